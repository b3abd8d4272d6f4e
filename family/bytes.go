package family

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes is a number of bytes, written plainly or with a unit: 512KiB, 64MiB, 2GiB.
type Bytes int64

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (b *Bytes) UnmarshalYAML(text []byte) (err error) {
	*b, err = ParseBytes(strings.TrimSpace(string(text)))
	return err
}

// ExpectedBytes describes the format of a size.
const ExpectedBytes = "a number of bytes, such as 1048576, 512KiB, 64MiB or 2GiB"

// ParseBytes parses a size as the configuration writes it.
func ParseBytes(text string) (Bytes, error) {
	unit := strings.TrimLeft(text, "0123456789")
	number, err := strconv.ParseInt(strings.TrimSuffix(text, unit), 10, 64)
	size, ok := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[strings.TrimSpace(unit)]
	if err != nil || !ok || number > (1<<62)/size {
		return 0, fmt.Errorf("invalid size %q: expected %s", text, ExpectedBytes)
	}
	return Bytes(number * size), nil
}

// String formats b as in the configuration.
func (b Bytes) String() string {
	for _, unit := range []struct {
		size Bytes
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b > 0 && b%unit.size == 0 {
			return fmt.Sprint(int64(b/unit.size), unit.name)
		}
	}
	return fmt.Sprint(int64(b))
}
