package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// checked reads a content and ends with io.EOF only if its size and hash are right.
type checked struct {
	from io.Reader
	file File
	left int64
	sum  hash.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	if c.sum == nil {
		c.sum = sha256.New()
	}
	n, err := c.from.Read(p)
	c.sum.Write(p[:n])
	if c.left -= int64(n); c.left < 0 {
		return n, fmt.Errorf("%w: %s has more than %d bytes", ErrDamaged, object(c.file.SHA256), c.file.Bytes)
	}
	if err != io.EOF {
		return n, err
	}
	if c.left > 0 {
		return n, fmt.Errorf("%w: %s lacks %d of %d bytes", ErrDamaged, object(c.file.SHA256), c.left, c.file.Bytes)
	}
	if got := hex.EncodeToString(c.sum.Sum(nil)); got != c.file.SHA256 {
		return n, fmt.Errorf("%w: %s has the hash %s", ErrDamaged, object(c.file.SHA256), got)
	}
	return n, io.EOF
}
