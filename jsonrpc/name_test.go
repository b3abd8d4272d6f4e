package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"
)

// Names of members match as in encoding/json, and of several that match, the last counts.
func TestNamesMatchAsInEncodingJSON(t *testing.T) {
	for _, object := range []string{
		`{"blockHash":1}`, `{"blockhash":1}`, `{"BLOCKHASH":1}`, `{"blocKHa\u0073h":1}`, `{"blockHas":1}`, `{"blockHash0":1}`, `{"block_hash":1}`,
		`{"bloc\u212ahash":1}`, `{"blockHa\u017fh":1}`, `{"blockha\u017f\u017fh":1}`, `{"blockHashſ":1}`, `{"":1}`, `{"blockHa\u00dfh":1}`, `{"b\u00ecockHash":1}`,
		`{"blockHash":1,"BLOCKHASH":2}`, `{"BLOCKHASH":2,"blockHash":1}`, `{"Blockhash":3,"other":4}`,
		`{"@_0":1}`, `{"\u0060_0":1}`, `{"@\u007f0":1}`, `{"@_\u0010":1}`, `{"@?0":1}`,
	} {
		var want struct {
			BlockHash int `json:"blockHash"`
			Signs     int `json:"@_0"`
		}
		if err := json.Unmarshal([]byte(object), &want); err != nil {
			t.Fatal(err)
		}
		got := want
		got.BlockHash, got.Signs = 0, 0
		members, _ := Object([]byte(object))
		for members.Next() {
			value := int(members.Value()[0] - '0')
			switch name := members.Name(); {
			case name.Is("blockHash"):
				got.BlockHash = value
			case name.Is("@_0"):
				got.Signs = value
			}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", object, got, want)
		}
	}
}

// FuzzNameIs compares with the folding of Unicode.
func FuzzNameIs(f *testing.F) {
	f.Add("chainId", "CHAINID")
	f.Add("k", "\u212a")
	f.Fuzz(func(t *testing.T, name, other string) {
		for _, c := range []byte(name) {
			if c >= 0x80 {
				t.Skip()
			}
		}
		if got, want := Name(other).Is(name), strings.EqualFold(other, name); got != want {
			t.Errorf("Name(%q).Is(%q) is %v", other, name, got)
		}
	})
}
