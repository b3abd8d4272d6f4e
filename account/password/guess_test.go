package password

import (
	"strings"
	"testing"
)

func TestGuessable(t *testing.T) {
	for _, c := range []struct {
		password string
		about    []string
		want     bool
	}{
		{"1234567890", nil, true},
		{"0987654321", nil, true},
		{"1234512345", nil, true},
		{"aaaaaaaaaa", nil, true},
		{"aaaaabbbbb", nil, true},
		{"ababababab", nil, true},
		{"k7xk7xk7xk7", nil, true},
		{"éàéàéàéàéà", nil, true},
		{"abcdefghij", nil, true},
		{"qwertyuiop", nil, true},
		{"1q2w3e4r5t", nil, true},
		{"1qaz2wsx3edc", nil, true},
		{"!@#$%^&*()", nil, true},
		{"password123", nil, true},
		{"PASSWORD2024!", nil, true},
		{"P@ssw0rd123", nil, true},
		{"passwordpassword", nil, true},
		{"1password1!", nil, true},
		{"iloveyou1234", nil, true},
		{"liverpool1892", nil, true},
		{"Administrator", nil, true},
		{"qwerty-12345", nil, true},
		{"summer2025!", nil, true},
		{"welcome.to.1", nil, false},
		{"jsmith2024", []string{"jsmith"}, true},
		{"jsmith2024", nil, false},

		{"correct horse battery", nil, false},
		{"a stone on a stone", nil, false},
		{"Tr0ub4dor&3", nil, false},
		{"xkq123zpwm", nil, false},
		{"7f3a9c01e4", nil, false},
		{"my dog bit the password", nil, false},
		{"кот на крыше", nil, false},
		{"k7xR2mk7xR2m", nil, false},
	} {
		if got := Guessable(c.password, c.about...); got != c.want {
			t.Errorf("%q, about %q: %t, expected %t", c.password, c.about, got, c.want)
		}
	}
}

func TestCommonWords(t *testing.T) {
	seen := make(map[string]bool)
	for _, word := range strings.Split(strings.TrimSuffix(common, "\n"), "\n") {
		if seen[word] || word == "" || word != strings.ToLower(strings.TrimSpace(word)) || len(word) < minRun+1 {
			t.Errorf("%q is a duplicate, or not a word in the expected form", word)
		}
		seen[word] = true
	}
}

func BenchmarkGuessable(b *testing.B) {
	long := strings.Repeat("correct horse ", 18)
	for b.Loop() {
		Guessable(long)
	}
}
