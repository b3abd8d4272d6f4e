package password

import (
	_ "embed" // for common.txt
	"slices"
	"strings"
	"unicode"
)

// common is words that passwords are commonly made of, one a line, in lower case.
//
//go:embed common.txt
var common string

const (
	// maxParts is how many parts a password may have and count as guessable. Each word,
	// sequence, repeat or year that it is made of is one, each other character too.
	maxParts = 5
	minRun   = 3 // characters that make a sequence
)

// runs are sequences that people type, forwards or backwards: letters, digits, and keys in
// rows and columns.
var runs = [...]string{
	"abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "qwertzuiop", "azertyuiop", "asdfghjkl", "zxcvbnm", "yxcvbnm",
	"1q2w3e4r5t6y7u8i9o0p", "q1w2e3r4t5y6u7i8o9p0", "1qaz2wsx3edc4rfv5tgb6yhn7ujm", "!@#$%^&*()",
}

// Guessable says whether a password is little more than what everybody tries first:
// common words, sequences such as 12345 or qwerty, repeats and years, also where digits and
// signs stand for letters. about is what is known of its person, such as the name.
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

// countParts is the fewest parts that a text can be taken apart into.
func countParts(text []rune, words []string) int {
	fewest := make([]int, len(text)+1) // of what comes before each place
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

// repeats says whether a text is its first characters over and over, the last time
// perhaps cut short.
func repeats(text []rune, unit int) bool {
	return slices.Equal(text[unit:], text[:len(text)-unit])
}

// longestRun is how many characters a sequence has that a text begins with, or one
// character that follows itself.
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

// isYear says whether a text begins with a year that people remember.
func isYear(text []rune) bool {
	return len(text) >= 4 && (text[0] == '1' && text[1] == '9' || text[0] == '2' && text[1] == '0') && unicode.IsDigit(text[2]) && unicode.IsDigit(text[3])
}

// beginsWith is how many characters a word takes of the beginning of a text; 0: the text
// does not begin with it.
func beginsWith(text []rune, word string) (n int) {
	for _, letter := range word {
		if n == len(text) || text[n] != letter && !standsFor(text[n], letter) {
			return 0
		}
		n++
	}
	return n
}

// standsFor says whether people write a sign in place of a letter.
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
