package origin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/internal/pipes"
)

const content = "the content of a file"

var errWrong = errors.New("wrong content")

func check(got []byte) error {
	if string(got) != content {
		return fmt.Errorf("%w: %d bytes", errWrong, len(got))
	}
	return nil
}

// get requests a file from a server whose answers are given, the last one for ever. It
// returns how many requests there were. It runs within a bubble of synctest.
func get(t *testing.T, ctx context.Context, answers ...http.HandlerFunc) (int, error) {
	t.Helper()
	var requests atomic.Int64
	server := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/deep/a file" || r.URL.RawQuery != "token=x" {
			t.Errorf("requested %s", r.URL)
		}
		answers[min(int(requests.Add(1)), len(answers))-1](w, r)
	})
	line := pipes.Listen()
	go func() { _ = server.Serve(line) }()
	defer server.Close()
	o, err := Open("http://pipe/deep/index?token=x", "index")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	transport := o.client.Transport.(*http.Transport)
	transport.DialContext, transport.Proxy = line.DialContext, nil
	o.Tries, o.Wait, o.Idle, o.Whole = 4, time.Millisecond, 2*time.Second, 6*time.Second
	got, err := o.Get(ctx, "a file", 100, check)
	if err == nil && (string(got) != content || o.Read() != int64(len(content))) {
		t.Errorf("got %q, and read %d bytes", got, o.Read())
	}
	if err != nil && strings.Contains(err.Error(), "token") {
		t.Errorf("the error shows the URL: %v", err)
	}
	return int(requests.Load()), err
}

func right(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, content) }

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// flush sends what was written.
func flush(w http.ResponseWriter) {
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(err)
	}
}

func stalls(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, content[:5])
	flush(w)
	<-r.Context().Done()
}

func drips(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		fmt.Fprint(w, "x")
		flush(w)
		select {
		case <-time.After(time.Second):
		case <-r.Context().Done():
		}
	}
}

func cutsOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	fmt.Fprint(w, content[:5])
	flush(w)
	panic(http.ErrAbortHandler)
}

func endless(w http.ResponseWriter, r *http.Request) {
	for block := bytes.Repeat([]byte("x"), 1<<16); r.Context().Err() == nil; {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// TestServers: what fails once is requested again, and what a server does at length ends.
func TestServers(t *testing.T) {
	for name, c := range map[string]struct {
		answers  []http.HandlerFunc
		requests int    // that reach the server
		want     string // error; empty: none
	}{
		"right":              {[]http.HandlerFunc{right}, 1, ""},
		"busy twice":         {[]http.HandlerFunc{status(503), status(429), right}, 3, ""},
		"busy for ever":      {[]http.HandlerFunc{status(503)}, 4, "a file: the server answers 503"},
		"absent":             {[]http.HandlerFunc{status(404)}, 1, "a file: the server answers 404"},
		"forbidden":          {[]http.HandlerFunc{status(403)}, 1, "a file: the server answers 403"},
		"stalls once":        {[]http.HandlerFunc{stalls, right}, 2, ""},
		"stalls for ever":    {[]http.HandlerFunc{stalls}, 4, "a file: the server sends nothing more"},
		"drips":              {[]http.HandlerFunc{drips, right}, 2, ""},
		"drips for ever":     {[]http.HandlerFunc{drips}, 4, "a file: the server takes longer than 6s"},
		"cuts off once":      {[]http.HandlerFunc{cutsOff, right}, 2, ""},
		"cuts off for ever":  {[]http.HandlerFunc{cutsOff}, 4, "a file: unexpected EOF"},
		"lies once":          {[]http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "lie") }, right}, 2, ""},
		"lies for ever":      {[]http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "lie") }}, 4, "wrong content: 3 bytes"},
		"endless":            {[]http.HandlerFunc{endless}, 4, "the file is too long: more than 100 bytes"},
		"says it is endless": {[]http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1000000000000") }}, 4, "the file is too long"},
		"redirects":          {[]http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) }}, 40, "a file: stopped after 10 redirects"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests, err := get(t, t.Context(), c.answers...)
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if requests != c.requests {
					t.Errorf("%d requests, want %d", requests, c.requests)
				}
			})
		})
	}
}

// TestCanceled: a context ends a request and the wait for the next one.
func TestCanceled(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"request": stalls, "wait": status(503)} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("stopped")
			_, err := get(t, ctx, func(w http.ResponseWriter, r *http.Request) {
				cancel(why)
				answer(w, r)
			})
			if !errors.Is(err, why) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestFolder: files of a folder are read once, and their errors name them.
func TestFolder(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"right": content, "wrong": "x", "long": strings.Repeat("x", 101)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []string{folder, filepath.Join(folder, "right")} {
		o, err := Open(from, "right")
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"right": "", "wrong": "wrong: wrong content", "long": "long: the file is too long", "none": "none: no such file"} {
			if _, err := o.Get(t.Context(), name, 100, check); want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	for _, from := range []string{filepath.Join(folder, "none"), filepath.Join(folder, "wrong"), "ftp://example.org/x", "http://"} {
		if _, err := Open(from, "right"); err == nil {
			t.Errorf("%s was opened", from)
		}
	}
}
