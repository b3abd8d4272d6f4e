package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ashlar/gateway"
	"ashlar/jsonrpc"
)

// slotWriter records which calls run while an answer is compressed, and while it is written.
type slotWriter struct {
	*httptest.ResponseRecorder
	handler              *gateway.Handler
	compressing, writing []slots
}

type slots struct{ light, heavy int }

func (w *slotWriter) taken() slots {
	stats := w.handler.Stats()
	return slots{stats.LightRunning, stats.HeavyRunning}
}

// Header is called between the compression of an answer and the change of its encoding.
func (w *slotWriter) Header() http.Header {
	header := w.ResponseRecorder.Header()
	if header.Get("Vary") != "" && header.Get("Content-Encoding") == "" {
		w.compressing = append(w.compressing, w.taken())
	}
	return header
}

func (w *slotWriter) Write(p []byte) (int, error) {
	w.writing = append(w.writing, w.taken())
	return w.ResponseRecorder.Write(p)
}

// An answer is compressed in the slot of its call, or of the last call of a batch, which is free
// again before the client must read.
func TestSlotIsHeldUntilAnAnswerIsCompressed(t *testing.T) {
	n := network("alpha")
	price := *n.Methods.Find("test_large")
	price.Name, price.Cost = "test_heavy", jsonrpc.Heavy(1)
	var err error
	if n.Methods, err = n.Methods.With(price); err != nil {
		t.Fatal(err)
	}
	handler, err := gateway.New(gateway.Config{Keys: oneKey{}, Networks: []gateway.Network{n}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, request string
		want          slots
	}{
		{"a light call", call("test_large"), slots{light: 1}},
		{"a heavy call", call("test_heavy"), slots{heavy: 1}},
		{"a batch that ends with a heavy call", "[" + call("test_large") + "," + call("test_heavy") + "]", slots{heavy: 1}},
		{"a batch that ends with an unknown method", "[" + call("test_heavy") + "," + call("test_large") + "," + call("unknown") + "]", slots{light: 1}},
	} {
		w := &slotWriter{ResponseRecorder: httptest.NewRecorder(), handler: handler}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://a.test/v3/"+goodKey, strings.NewReader(c.request))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept-Encoding", "gzip")
		handler.ServeHTTP(w, r)
		if len(w.compressing) != 1 || w.compressing[0] != c.want {
			t.Errorf("%s: %+v run while its answer is compressed, expected %+v", c.name, w.compressing, c.want)
		}
		if len(w.writing) != 1 || w.writing[0] != (slots{}) {
			t.Errorf("%s: %+v run while its answer is written, expected none", c.name, w.writing)
		}
	}
}
