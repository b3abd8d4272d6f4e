package jsonrpc

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// appendHead appends an answer up to the value of its result or error.
func appendHead(out, id []byte, member string) []byte {
	out = append(out, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		out = append(out, "null"...)
	} else {
		out = append(out, id...)
	}
	return append(append(append(out, `,"`...), member...), `":`...)
}

// AppendError appends a complete error answer. id is raw JSON; nil means null.
func AppendError(out, id []byte, e *Error) []byte {
	out = append(appendHead(out, id, "error"), `{"code":`...)
	out = strconv.AppendInt(out, int64(e.Code), 10)
	out = append(out, `,"message":`...)
	out = AppendString(out, e.Message)
	out = appendData(out, e.Data)
	return append(out, '}', '}')
}

// appendData appends the data member of an error. It appends nothing if data is nil or
// cannot be encoded: an error without data is better than none.
func appendData(out []byte, data any) []byte {
	if data == nil {
		return out
	}
	const member = `,"data":`
	if text, ok := data.(string); ok {
		return AppendString(append(out, member...), text)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return out
	}
	return append(append(out, member...), raw...)
}

// AppendString appends text as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString[T string | []byte](out []byte, text T) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	from := 0 // text[from:i] is not yet copied
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' {
				out = append(out, text[from:i]...)
				switch c {
				case '"', '\\':
					out = append(out, '\\', c)
				case '\n':
					out = append(out, '\\', 'n')
				case '\r':
					out = append(out, '\\', 'r')
				case '\t':
					out = append(out, '\\', 't')
				default:
					out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
				}
				from = i + 1
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
		if r == utf8.RuneError && n == 1 {
			out = append(append(out, text[from:i]...), `\ufffd`...)
			from = i + 1
		}
		i += n
	}
	return append(append(out, text[from:]...), '"')
}
