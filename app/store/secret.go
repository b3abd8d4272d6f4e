package store

import (
	"fmt"
	"os"
	"strings"
)

// ReadSecret returns the secret in a file that an entry of the configuration names, empty without a file. An
// error begins with what, such as the name of the entry.
func ReadSecret(what, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty: expected the secret in it", what, path)
	}
	return secret, nil
}
