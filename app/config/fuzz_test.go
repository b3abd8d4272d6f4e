package config

import (
	"strings"
	"testing"

	"ashlar/internal/memory"
)

// configFactor: the parser keeps a token and a node for a character or two, and
// its errors quote the file.
const configFactor = 4096

// FuzzConfig looks for configurations that make the parser panic or take more
// memory than they are worth, and for errors that do not name the file.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"data: /var/lib/ashlar\nlisten: 127.0.0.1:8545\ncache: 128MiB\nnetworks:\n  sepolia:\n    hosts: [a.example, b.example]\norigins: [\"*\"]\n",
		"limits: {body: 5MiB, batch_calls: 1000, time: 30s}\n",
		"origins: &a [x, x]\nnetworks: {a: {hosts: *a}}\n",
		"- - - -\n", "[[[[", "cache: -1", "a: |\n  b\n", "? a\n: b\n", "\"\\x\"", "limits:\n\ttime: 1s\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		memory.Within(t, memory.Slack+configFactor*len(text), func() {
			if _, err := parse("ashlar.yaml", text, families()); err != nil && !strings.HasPrefix(err.Error(), "ashlar.yaml:") {
				t.Fatalf("an error that does not begin with the file's name: %v", err)
			}
		})
	})
}

// Deep or unfolding configurations take no more than others, and are refused by line.
func TestConfigShape(t *testing.T) {
	aliases := "origins: &a [x,x,x,x,x,x,x,x,x,x]\nnetworks:\n"
	for name := 'b'; name < 'j'; name++ {
		aliases += "  n: {hosts: &" + string(name) + " [" + strings.Repeat("*"+string(name-1)+",", 10) + "]}\n"
	}
	for _, test := range []struct{ name, text, want string }{
		{"aliases", aliases, "ashlar.yaml:1: "},
		{"lists in brackets", "data: x\norigins: " + strings.Repeat("[", 10000), "ashlar.yaml:2: "},
		{"maps in brackets", strings.Repeat("{a: ", 10000), "ashlar.yaml:1: "},
		{"lists in a line", strings.Repeat("- ", 10000), "ashlar.yaml:1: "},
		{"maps in a line", strings.Repeat("a: ", 10000), "ashlar.yaml:1: "},
		{"maps in lines", func() (text string) {
			for depth := range 100 {
				text += strings.Repeat(" ", depth) + "a:\n"
			}
			return text
		}(), "ashlar.yaml:35: "},
		{"large", strings.Repeat("#", maxConfigBytes+1), "ashlar.yaml: 1048577 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			memory.Within(t, memory.Slack+1024*len(test.text), func() {
				if _, err := parse("ashlar.yaml", []byte(test.text), families()); err == nil || !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("got %.200v, expected %s", err, test.want)
				}
			})
		})
	}
}
