package http1

import (
	"bufio"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const usualHead = "POST /v3/0123456789abcdef HTTP/1.1\r\nHost: 127.0.0.1:8545\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"

// heads are beginnings of input, and whether they are heads of plain requests.
var heads = []struct {
	name  string
	head  string
	plain bool
}{
	{"usual", usualHead, true},
	{"names in lower case", strings.ToLower(usualHead[5:]), false},
	{"fields in lower case", "POST /v3/x HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n", true},
	{"a field twice", "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nContent-Length: 0\r\nX-Forwarded-For: 192.0.2.2\r\n\r\n", true},
	{"an empty value, spaces and tabs", "POST / HTTP/1.1\r\nHost:\ta \r\nAccept:\r\nContent-Length:  0\t\r\n\r\n", true},
	{"IPv6", "POST / HTTP/1.1\r\nHost: [::1]:8545\r\nContent-Length: 0\r\n\r\n", true},
	{"a length of nines", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n", true},
	{"a later request", usualHead + "{}" + usualHead, true},
	{"GET", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", false},
	{"HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
	{"no version", "POST /\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
	{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false},
	{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", false},
	{"a query", "POST /?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
	{"an escape", "POST /%76 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
	{"an absolute URL", "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
	{"two slashes", "POST //a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
	{"no host", "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", false},
	{"an empty host", "POST / HTTP/1.1\r\nHost: \r\nContent-Length: 0\r\n\r\n", false},
	{"an empty host and another", "POST / HTTP/1.1\r\nHost:\r\nHost: b\r\nContent-Length: 0\r\n\r\n", false},
	{"two hosts", "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n", false},
	{"a host with other characters", "POST / HTTP/1.1\r\nHost: a/b\r\nContent-Length: 0\r\n\r\n", false},
	{"no length", "POST / HTTP/1.1\r\nHost: a\r\n\r\n", false},
	{"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", false},
	{"two lengths, the first of them zero", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n", false},
	{"a wrong length and another", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\nContent-Length: 1\r\n\r\n", false},
	{"an empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", false},
	{"a length with a letter", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1a\r\n\r\n", false},
	{"a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", false},
	{"a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", false},
	{"a length with a sign", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", false},
	{"a length that overflows", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", false},
	{"chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", false},
	{"length and chunked", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\ntransfer-encoding: chunked\r\n\r\n", false},
	{"Expect", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", false},
	{"Connection: close", "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false},
	{"an upgrade", "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n", false},
	{"a space before the colon", "POST / HTTP/1.1\r\nHost : a\r\nContent-Length: 0\r\n\r\n", false},
	{"a space before the name", "POST / HTTP/1.1\r\n Host: a\r\nContent-Length: 0\r\n\r\n", false},
	{"a space before another colon", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding : chunked\r\n\r\n", false},
	{"a space before another name", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n Accept: a\r\n\r\n", false},
	{"no name", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n: a\r\n\r\n", false},
	{"a continued line", "POST / HTTP/1.1\r\nHost: a\r\nAccept: a\r\n b\r\nContent-Length: 0\r\n\r\n", false},
	{"a line that ends with \\n", "POST / HTTP/1.1\nHost: a\r\nContent-Length: 0\r\n\r\n", false},
	{"a head that ends with \\n", "POST / HTTP/1.1\nHost: a\nContent-Length: 0\n\n", false},
	{"a \\r inside a value", "POST / HTTP/1.1\r\nHost: a\r\nAccept: a\rb\r\nContent-Length: 0\r\n\r\n", false},
	{"a zero byte", "POST / HTTP/1.1\r\nHost: a\r\nAccept: a\x00b\r\nContent-Length: 0\r\n\r\n", false},
	{"not ASCII", "POST / HTTP/1.1\r\nHost: a\r\nAccept: ä\r\nContent-Length: 0\r\n\r\n", false},
	{"no colon", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length\r\n\r\n", false},
	{"no colon in another field", "POST / HTTP/1.1\r\nHost: a\r\nAccept\r\nContent-Length: 0\r\n\r\n", false},
	{"too many fields", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n" + strings.Repeat("A: b\r\n", maxFields) + "\r\n", false},
}

// read finds and parses the head with which the input begins.
func read(h *head, input string) (length int, plain bool) {
	length, plain = findHead([]byte(input))
	return length, plain && length > 0 && h.parse(input[:length])
}

func TestHead(t *testing.T) {
	h := &head{header: make(http.Header)}
	for _, c := range heads {
		t.Run(c.name, func(t *testing.T) {
			if _, plain := read(h, c.head); plain != c.plain {
				t.Errorf("plain: %v, want %v", plain, c.plain)
			}
			checkHead(t, h, c.head)
		})
	}
}

func TestPartsOfAHeadMayBecomeOne(t *testing.T) {
	for n := range len(usualHead) {
		if length, plain := findHead([]byte(usualHead[:n])); length != 0 || !plain {
			t.Errorf("%q: length %d, plain %v", usualHead[:n], length, plain)
		}
	}
}

// checkHead compares a plain head with what net/http makes of it.
func checkHead(t *testing.T, h *head, input string) {
	t.Helper()
	length, plain := read(h, input)
	if !plain {
		return
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(input)))
	if err != nil {
		t.Fatalf("net/http: %v", err)
	}
	if r.Method != http.MethodPost || r.URL.String() != h.path || r.URL.Path != h.path || r.RequestURI != h.path || r.Host != h.host ||
		r.ContentLength != h.length || r.Close || len(r.TransferEncoding) > 0 || len(r.Trailer) > 0 {
		t.Errorf("path %q, host %q, length %d, but net/http: %+v", h.path, h.host, h.length, r)
	}
	if !reflect.DeepEqual(r.Header, h.header) {
		t.Errorf("fields %v, but net/http: %v", h.header, r.Header)
	}
	if !strings.HasSuffix(input[:length], "\r\n\r\n") || strings.Contains(input[:length-1], "\r\n\r\n") {
		t.Errorf("head %q", input[:length])
	}
}

// FuzzHead compares what is accepted here with what net/http makes of it.
func FuzzHead(f *testing.F) {
	for _, c := range heads {
		f.Add(c.head)
	}
	h := &head{header: make(http.Header)}
	f.Fuzz(func(t *testing.T, input string) { checkHead(t, h, input) })
}
