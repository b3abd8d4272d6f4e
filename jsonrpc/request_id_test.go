package jsonrpc

import "testing"

func TestRequestID(t *testing.T) {
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"m"}`:                    "1",
		` { "method" : "m" , "params":[{"id":5}], "id" : "a\"" } `: `"a\""`,
		`{"id":1,"id":2}`:         "2",
		`{"ID":1}`:                "1",
		`{"id":null}`:             "null",
		`{"id":7,"params":["0x12`: "7", // cut off after the id
		`{"id":7,`:                "7",
		`{"id":7`:                 "", // may go on
		`{"id":"abc`:              "",
		`{"params":["0x12`:        "",
		`[{"id":1}]`:              "",
		`{"id":true}`:             "",
		`{"id":{}}`:               "",
		"{\"id\":\"\xff\"}":       "",
		``:                        "",
		`id=1`:                    "",
	} {
		if got := string(RequestID([]byte(body))); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
