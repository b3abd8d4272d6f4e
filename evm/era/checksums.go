package era

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ChecksumsName is the name of the file with the checksums of a folder's history files.
const ChecksumsName = "checksums.txt"

// Checksum is the SHA-256 of a file's bytes.
type Checksum [sha256.Size]byte

func (c Checksum) String() string { return "0x" + hex.EncodeToString(c[:]) }

// Sum is the checksum of all that a reader has.
func Sum(in io.Reader) (sum Checksum, err error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return sum, err
	}
	return Checksum(hash.Sum(nil)), nil
}

// Checksums is a published list of checksums. Its lines have one of two forms: the
// checksum alone, as geth writes it, or the checksum and the file's name, as sha256sum
// does.
type Checksums struct {
	named map[string]Checksum
	bare  map[Checksum]bool
}

// ReadChecksums reads the list in a folder, and returns nil if there is none.
func ReadChecksums(folder string) (*Checksums, error) {
	path := filepath.Join(folder, ChecksumsName)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := parseChecksums(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// parseChecksums reads a list. Its errors name the line.
func parseChecksums(data []byte) (*Checksums, error) {
	list := &Checksums{named: make(map[string]Checksum), bare: make(map[Checksum]bool)}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for number := 1; lines.Scan(); number++ {
		if err := list.add(strings.TrimSpace(lines.Text())); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return list, lines.Err()
}

func (c *Checksums) add(line string) error {
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	digits, name, hasName := strings.Cut(line, " ")
	decoded, err := hex.DecodeString(strings.TrimPrefix(digits, "0x"))
	if err != nil || len(decoded) != sha256.Size {
		return fmt.Errorf("found %.80q; want a SHA-256 checksum of 64 hexadecimal digits, and a file name or nothing", line)
	}
	sum := Checksum(decoded)
	if !hasName {
		c.bare[sum] = true
		return nil
	}
	name = filepath.Base(strings.TrimPrefix(strings.TrimSpace(name), "*")) // sha256sum marks binary files
	if other, twice := c.named[name]; twice && other != sum {
		return fmt.Errorf("%s is listed twice with different checksums", name)
	}
	c.named[name] = sum
	return nil
}

// ErrChecksum says that a file is not one of those that a list of checksums is about.
var ErrChecksum = errors.New("the checksum is wrong")

// Check returns an ErrChecksum if the list does not have that checksum for the file.
func (c *Checksums) Check(name string, sum Checksum) error {
	want, ok := c.named[name]
	switch {
	case ok && want == sum, !ok && c.bare[sum]:
		return nil
	case ok:
		return fmt.Errorf("%w: the file has %s, %s lists %s", ErrChecksum, sum, ChecksumsName, want)
	}
	return fmt.Errorf("%w: the file has %s, which %s does not list", ErrChecksum, sum, ChecksumsName)
}
