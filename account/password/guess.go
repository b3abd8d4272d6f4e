package password

import (
	_ "embed" // for common.txt
	"slices"
	"strings"
	"unicode"
)

// common lists words that are common in passwords, one per line, in lower case.
//
//go:embed common.txt
var common string

const (
	// maxParts is the greatest number of parts that a guessable password can have. Each
	// word, sequence, repetition or year is one part, and so is each other character.
	maxParts = 5
	minRun   = 3 // minimum length of a sequence, in characters
)

// runs are sequences that people type, forwards or backwards: letters, digits, and rows and
// columns of keys.
var runs = [...]string{
	"abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "qwertzuiop", "azertyuiop", "asdfghjkl", "zxcvbnm", "yxcvbnm",
	"1q2w3e4r5t6y7u8i9o0p", "q1w2e3r4t5y6u7i8o9p0", "1qaz2wsx3edc4rfv5tgb6yhn7ujm", "!@#$%^&*()",
}

// Guessable reports whether a password consists of little more than common words, sequences
// such as 12345 or qwerty, repetitions and years, including common substitutions of digits
// and signs for letters. about lists known facts about the user, such as the name.
func Guessable(password string, about ...string) bool {
	text := []rune(strings.ToLower(password))
	words := slices.Concat(strings.Fields(common), about)
	parts := countParts(text, words)
	for unit := 1; unit <= len(text)/2 && parts > maxParts; unit++ {
		if repeats(text, unit) {
			parts = min(parts, countParts(text[:unit], words)+1)
		}
	}
	return parts <= maxParts
}

// countParts returns the fewest parts into which a text can be divided.
func countParts(text []rune, words []string) int {
	fewest := make([]int, len(text)+1) // by length of the prefix
	for i := range text {
		fewest[i+1] = fewest[i] + 1
	}
	for i := range text {
		fewest[i+1] = min(fewest[i+1], fewest[i]+1)
		for n := longestRun(text[i:]); n >= minRun; n-- {
			fewest[i+n] = min(fewest[i+n], fewest[i]+1)
		}
		if isYear(text[i:]) {
			fewest[i+4] = min(fewest[i+4], fewest[i]+1)
		}
		for _, word := range words {
			if n := beginsWith(text[i:], word); n > 0 {
				fewest[i+n] = min(fewest[i+n], fewest[i]+1)
			}
		}
	}
	return fewest[len(text)]
}

// repeats reports whether a text consists of repetitions of its first unit characters; the
// last repetition may be incomplete.
func repeats(text []rune, unit int) bool {
	return slices.Equal(text[unit:], text[:len(text)-unit])
}

// longestRun returns the length of the longest sequence, or repetition of one character,
// that a text begins with.
func longestRun(text []rune) int {
	longest := 1
	for longest < len(text) && text[longest] == text[0] {
		longest++
	}
	for _, run := range runs {
		start := strings.IndexRune(run, text[0])
		for _, step := range []int{1, -1} {
			n := 0
			for at := start; n < len(text) && at >= 0 && at < len(run) && rune(run[at]) == text[n]; at += step {
				n++
			}
			longest = max(longest, n)
		}
	}
	return longest
}

// isYear reports whether a text begins with a plausible year.
func isYear(text []rune) bool {
	return len(text) >= 4 && (text[0] == '1' && text[1] == '9' || text[0] == '2' && text[1] == '0') && unicode.IsDigit(text[2]) && unicode.IsDigit(text[3])
}

// beginsWith returns the length of the prefix of text that spells word, 0 if text does not
// begin with word.
func beginsWith(text []rune, word string) (n int) {
	for _, letter := range word {
		if n == len(text) || text[n] != letter && !standsFor(text[n], letter) {
			return 0
		}
		n++
	}
	return n
}

// standsFor reports whether sign is a common substitute for letter.
func standsFor(sign, letter rune) bool {
	switch letter {
	case 'a':
		return sign == '@' || sign == '4'
	case 'e':
		return sign == '3'
	case 'i':
		return sign == '1' || sign == '!'
	case 'l':
		return sign == '1'
	case 'o':
		return sign == '0'
	case 's':
		return sign == '$' || sign == '5'
	case 't':
		return sign == '7'
	}
	return false
}
