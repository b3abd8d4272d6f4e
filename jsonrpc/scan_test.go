package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParse compares the scanner with encoding/json: both must accept the same documents
// and find the same members.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x00"},"latest"]}`,
		` [ {"id":"a\u00e9\"","method":"m","params":{}} , 1 , "x", null, [true,false] ] `,
		`{"method":"a","m\u0065thod":"b\ud83d\ude00\udc00","id":-0.1e+5}`,
		`{"a":{"b":[{},{"c":""}]},"id":null}`, `01`, `-`, `1.`, `1e`, `"\u12`, "\"\x01\"", "\"\xff\"", `{"a":1,}`, `[1,]`, "\x00", "1\x00", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m message
		fault := m.parse(data, 100)
		if fault != nil && fault.Code == CodeInvalidRequest {
			return // encoding/json has another limit of the depth
		}
		if want := json.Valid(data) && utf8.Valid(data); (fault == nil) != want {
			t.Fatalf("%q: accepted: %t, by encoding/json: %t (%v)", data, fault == nil, want, fault)
		}
		if fault != nil {
			return
		}
		var elements []json.RawMessage
		if !m.batch {
			elements = append(elements, bytes.Trim(data, " \t\r\n"))
		} else if err := json.Unmarshal(data, &elements); err != nil {
			t.Fatal(err)
		}
		if m.size > 0 && m.size != len(elements) {
			t.Fatalf("%q: %d elements, want %d", data, m.size, len(elements))
		}
		for i := range m.calls {
			compareCall(t, &m.calls[i], elements[i])
		}
	})
}

// compareCall compares one parsed element of a request with encoding/json. It decodes into a
// struct because names of members may be in any case.
func compareCall(t *testing.T, got *call, element []byte) {
	var want struct{ Method, Params, ID json.RawMessage }
	if element[0] != '{' {
		if got.fault == "" {
			t.Fatalf("%q is not an object, but has no fault", element)
		}
		return
	}
	if err := json.Unmarshal(element, &want); err != nil {
		t.Fatal(err)
	}
	var method string
	_ = json.Unmarshal(want.Method, &method)
	if string(got.method) != method {
		t.Fatalf("%q: method %q, want %q", element, got.method, method)
	}
	if params := want.Params; string(params) != "null" && !bytes.Equal(got.params, params) {
		t.Fatalf("%q: params %q, want %q", element, got.params, params)
	}
	if id := want.ID; got.id != nil && !bytes.Equal(got.id, id) || got.id == nil && id != nil && got.fault == "" {
		t.Fatalf("%q: id %q, want %q", element, got.id, id)
	}
}

// FuzzCursor runs a cursor over arbitrary bytes: it must terminate, and find the same as
// encoding/json in valid JSON.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{`[1,"2",{}]`, ` [ ] `, `[1,`, `[1] x`, `[,]`, `[`, "[\x00", `[1]`, "[]\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got []string
		c, ok := Array(data)
		for c.Next() {
			got = append(got, string(c.Value()))
		}
		var want []json.RawMessage
		err := json.Unmarshal(data, &want)
		if accepted := ok && c.Err() == nil; accepted != (err == nil && bytes.IndexByte(data, '[') >= 0) {
			if err == nil && strings.Count(string(data), "[")+strings.Count(string(data), "{") > MaxDepth || string(bytes.TrimSpace(data)) == "null" {
				return
			}
			t.Fatalf("%q: accepted: %t, by encoding/json: %v", data, accepted, err)
		}
		if err != nil || !ok || c.Err() != nil {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %q, want %q", data, got, want)
		}
		for i := range got {
			if got[i] != string(want[i]) {
				t.Fatalf("%q: element %d is %q, want %q", data, i, got[i], want[i])
			}
		}
	})
}

// FuzzString compares encoding and decoding of strings with encoding/json.
func FuzzString(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"\\\n\x00\x1f\x7f", "é\u2028😀", "\xff\xc3", "\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		encoded := AppendString(nil, text)
		var decoded string
		if err := json.Unmarshal(encoded, &decoded); err != nil {
			t.Fatalf("%q became %s: %v", text, encoded, err)
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); utf8.ValidString(text) && decoded != want {
			t.Fatalf("%q came back as %q", text, decoded)
		}
		if again, ok := String(encoded); !ok || string(again) != decoded {
			t.Fatalf("%s: String gives %q, want %q", encoded, again, decoded)
		}
	})
}

func TestMembers(t *testing.T) {
	members, ok := Object([]byte(` { "a" : 1 , "b\u0063": [ 2 , {} ], "":"x" } `))
	if !ok {
		t.Fatal("not taken for an object")
	}
	var got []string
	for members.Next() {
		got = append(got, string(members.Name())+"="+string(members.Value()))
	}
	if err := members.Err(); err != nil {
		t.Fatal(err)
	}
	if want := "a=1|bc=[ 2 , {} ]|=x"; strings.ReplaceAll(strings.Join(got, "|"), `"`, "") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, ok := Object([]byte(`[]`)); ok {
		t.Error("an array was taken for an object")
	}
	broken, _ := Object([]byte(`{"a":1,"b"}`))
	for broken.Next() {
		continue
	}
	if broken.Err() == nil {
		t.Error("no error for a member without a value")
	}
}

func TestBufferPoolDropsLargeBuffers(t *testing.T) {
	pool := BufferPool{MaxBytes: 4096}
	large := make([]byte, 10, 4097)
	pool.Put(&large)
	if b := pool.Get(); cap(*b) > 4096 || len(*b) != 0 {
		t.Errorf("got a buffer of %d bytes, capacity %d", len(*b), cap(*b))
	}
}

func TestBufferPoolKeepsFewLargeBuffers(t *testing.T) {
	pool := BufferPool{MaxBytes: 10, MaxLargeBytes: 250}
	for range 3 { // two fit
		b := make([]byte, 1, 100)
		pool.PutLarge(&b)
	}
	dropped := make([]byte, 1, 50)
	pool.Put(&dropped)
	if b := pool.Get(); cap(*b) > 10 {
		t.Errorf("Get returned a buffer of %d bytes", cap(*b))
	}
	for i, large := range []bool{true, true, false} {
		if b := pool.GetLarge(); cap(*b) == 100 != large || len(*b) != 0 {
			t.Errorf("buffer %d has %d bytes, capacity %d", i, len(*b), cap(*b))
		}
	}
	b := make([]byte, 0, 250)
	if pool.PutLarge(&b); cap(*pool.GetLarge()) != 250 {
		t.Error("a large buffer is rejected though none is kept")
	}
}

// The bytes that plain skips never include one that ends a string, starts an escape or is
// invalid.
func TestPlain(t *testing.T) {
	for _, around := range []byte{' ', 'a', 0x7f, 0x80, 0xff, '!', '#', '[', ']'} {
		text := bytes.Repeat([]byte{around}, 24)
		if n := plain(text); n != 24 {
			t.Errorf("%d of 24 bytes %q are plain", n, around)
		}
		for at := range text {
			for c := range 256 {
				text[at] = byte(c)
				special := c < ' ' || c == '"' || c == '\\'
				if n := plain(text); n > at && special || n < at/8*8 || n < 24 && !special {
					t.Errorf("with %q at %d of 24 bytes %q: %d are plain", byte(c), at, around, n)
				}
			}
			text[at] = around
		}
	}
}

// BenchmarkString scans the data of a call.
func BenchmarkString(b *testing.B) {
	for _, length := range []int{6, 66, 1 << 10, 22 << 10} {
		text := []byte(`"` + strings.Repeat("a", length) + `"`)
		b.Run(strconv.Itoa(length), func(b *testing.B) {
			for b.Loop() {
				s := scanner{data: text}
				if !s.string() {
					b.Fatal(s.fault())
				}
			}
		})
	}
}
