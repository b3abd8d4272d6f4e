// Package typo suggests a known name for a misspelled one, for error messages.
package typo

import "strings"

const (
	// maxTypos is how many typing errors a name may have to be taken for another.
	maxTypos = 2
	// maxSuggested is the length of the longest name that is compared.
	maxSuggested = 64
)

// Meant returns the name that was probably meant by an unknown one, or "": one that differs
// in case or by a few typing errors, or that has the name after a prefix such as eth_.
func Meant(names []string, unknown string) string {
	if unknown == "" {
		return ""
	}
	best, fewest := "", maxTypos+1
	for _, name := range names {
		_, short, _ := strings.Cut(name, "_")
		if strings.EqualFold(name, unknown) || strings.EqualFold(short, unknown) {
			return name
		}
		if n := typos(name, unknown); n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// typos returns how many letters have to be inserted, removed or replaced to make one name
// of another, or a number above maxTypos.
func typos(a, b string) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > maxTypos || len(b) > maxSuggested {
		return maxTypos + 1
	}
	var rows [2][maxSuggested + 1]int
	row, above := &rows[0], &rows[1]
	for i := range len(a) + 1 {
		row[i] = i
	}
	for j := range len(b) {
		row, above = above, row
		row[0] = j + 1
		least := row[0]
		for i := range len(a) {
			differ := 1
			if a[i] == b[j] {
				differ = 0
			}
			row[i+1] = min(above[i]+differ, above[i+1]+1, row[i]+1)
			least = min(least, row[i+1])
		}
		if least > maxTypos {
			return maxTypos + 1
		}
	}
	return row[len(a)]
}
