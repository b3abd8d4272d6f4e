package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// An answer that takes long makes all those late whose questions were due meanwhile.
func TestLateQuestionsCount(t *testing.T) {
	const stalled = 50 * askEvery
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			time.Sleep(stalled)
		}
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`)
	}))
	defer server.Close()
	c := newClient(strings.TrimPrefix(server.URL, "http://"), []string{"key"}, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*stalled)
	defer cancel()
	o := measure(ctx, []*client{c}, 2*stalled)
	late := 0
	for _, took := range o.took {
		if took > stalled/2 {
			late++
		}
	}
	if late < 5 || o.failed > 0 {
		t.Errorf("%d of %d answers are late by %v or more, %d failed (want at least 5 late, as one took %v and each %v one is due)", late, len(o.took), stalled/2, o.failed, stalled, askEvery)
	}
}
