package chart

import (
	"math"
	"strconv"
	"strings"
)

// Short formats a number for an axis.
func (u Unit) Short(v float64) string {
	if u == Milliseconds && v > 0 {
		return u.Exact(v)
	}
	if u == Bytes {
		return inBytes(v)
	}
	for _, scale := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= scale.size {
			return trimmed(v/scale.size, 2) + scale.name
		}
	}
	return trimmed(v, 2)
}

// Exact formats a number for a table.
func (u Unit) Exact(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case u == Bytes:
		return inBytes(v)
	case u == Milliseconds && v >= 1000:
		return trimmed(v/1000, 2) + " s"
	case u == Milliseconds && v >= 10:
		return trimmed(v, 0) + " ms"
	case u == Milliseconds && v >= 1:
		return trimmed(v, 2) + " ms"
	case u == Milliseconds:
		return trimmed(v, 3) + " ms"
	}
	return Grouped(v)
}

// inBytes formats a number of bytes.
func inBytes(v float64) string {
	units := []string{" B", " KiB", " MiB", " GiB", " TiB", " PiB"}
	for v >= 1024 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	decimals := 1
	if v >= 100 || units[0] == " B" {
		decimals = 0
	}
	return trimmed(v, decimals) + units[0]
}

// Grouped formats a number with commas between the thousands.
func Grouped(v float64) string {
	digits := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// trimmed formats a number with at most the given number of decimals, without trailing
// zeros.
func trimmed(v float64, decimals int) string {
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.ContainsRune(text, '.') {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
