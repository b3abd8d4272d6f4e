package node

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// An answer that never ends is given up once it is larger than an answer may be.
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
		t.Fatalf("answers are not bounded: %v", client.http.Transport)
	}
	bounded.most = 1 << 16 // so that it does not take long
	if _, err := client.Block(t.Context(), common.Hash{1}); err == nil || !strings.Contains(err.Error(), "larger than 65536 bytes") {
		t.Errorf("an endless answer: %v", err)
	}
}
