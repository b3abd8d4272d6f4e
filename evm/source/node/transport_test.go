package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// An endless response is aborted once it exceeds the limit.
func TestEndlessAnswer(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"0x`)
		for chunk := strings.Repeat("00", 1<<10); r.Context().Err() == nil; {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	client, err := New(endless.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	bounded, ok := client.http.Transport.(*boundedTransport)
	if !ok || bounded.most != answerBytes {
		t.Fatalf("responses are not bounded: %v", client.http.Transport)
	}
	bounded.most = 1 << 16 // to keep the test fast
	if _, err := client.Block(t.Context(), common.Hash{1}); err == nil || !strings.Contains(err.Error(), "larger than 65536 bytes") {
		t.Errorf("an endless response: %v", err)
	}
}

// headerAnswer returns a header as a node's JSON.
func headerAnswer(number string, extra int) string {
	zeros := func(count int) string { return `"0x` + strings.Repeat("00", count) + `"` }
	return fmt.Sprintf(`{"number":%q,"parentHash":%[2]s,"sha3Uncles":%[2]s,"miner":%[3]s,"stateRoot":%[2]s,"transactionsRoot":%[2]s,"receiptsRoot":%[2]s,`+
		`"logsBloom":%[4]s,"difficulty":"0x0","gasLimit":"0x0","gasUsed":"0x0","timestamp":"0x0","extraData":%[5]s}`,
		number, zeros(32), zeros(20), zeros(256), zeros(extra))
}

// A node cannot exceed the memory bound of one batch by rejecting batches, nor by headers of any
// size.
func TestLargeHeaders(t *testing.T) {
	asked, extra := 0, 0
	unbatched := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID     json.RawMessage
			Params []any
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, "no batches here", http.StatusBadRequest)
			return
		}
		asked++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, headerAnswer(request.Params[0].(string), extra))
	}))
	defer unbatched.Close()
	client, err := New(unbatched.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.most = 1 << 18
	for _, test := range []struct {
		name  string
		extra int
		asked int
		want  string // empty: no error
	}{
		{"headers of usual size", 32, 16, ""},
		{"more extra data than any header has", maxExtra + 1, 1, "it has 32769 bytes of extra data, expected at most 32768"},
		{"each within the limit, together over it", maxExtra, 4, "header 4: eth_getBlockByNumber: the responses exceed 262144 bytes in total"},
	} {
		asked, extra = 0, test.extra
		headers, err := client.Headers(t.Context(), 1, 16)
		if test.want == "" && (err != nil || len(headers) != 16) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %d headers, %v, expected %q", test.name, len(headers), err, test.want)
		}
		if asked != test.asked {
			t.Errorf("%s: %d headers were asked for, expected %d", test.name, asked, test.asked)
		}
	}
	var invalid *InvalidError
	extra = maxExtra + 1
	if _, err := client.Headers(t.Context(), 1, 1); !errors.As(err, &invalid) {
		t.Errorf("a header with too much extra data is answered with %v, expected an invalid answer", err)
	}
}
