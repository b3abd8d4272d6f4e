package main

import (
	"fmt"
	"io"
	"os"
	"unicode"
	"unicode/utf8"
)

// printable is a writer for text that may contain what others have chosen, such as e-mail
// addresses and the errors of upstream nodes. It escapes characters with which they could
// control the terminal or change the order of the text, as \u001b; JSON stays JSON.
type printable struct{ to io.Writer }

// stdout returns the standard output for such text.
func stdout() io.Writer { return printable{os.Stdout} }

// stderr returns the standard error output for such text.
func stderr() io.Writer { return printable{os.Stderr} }

// Write implements io.Writer. Each call must begin and end between two characters.
func (p printable) Write(text []byte) (int, error) {
	var out []byte
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, rest[0])
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			out = append(out, rest[:size]...)
		case r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		default: // a surrogate pair, as in JSON
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
		rest = rest[size:]
	}
	if _, err := p.to.Write(out); err != nil {
		return 0, err
	}
	return len(text), nil
}
