// Package origin reads files from a folder or a web server that nobody trusts: one that
// stalls, cuts off or lies costs time, and no more memory than the file may have.
package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"ashlar/endpoint"
)

// Origin is where files come from. Many goroutines may use it at once.
type Origin struct {
	// Tries is how often a file is requested from a web server, Wait the time after the
	// first failure, which doubles with each further one. Tests change them.
	Tries int
	Wait  time.Duration
	// Idle is how long a server may send nothing, Whole how long it may take for a file.
	Idle, Whole time.Duration

	folder string
	base   *url.URL // nil for a folder
	client *http.Client
	read   atomic.Int64
}

// longestWait is the longest time between two requests for the same file.
const longestWait = 30 * time.Second

// Open returns the origin with a name: a folder, or a URL that begins with http: or https:.
// It may end with the name of a file in it.
func Open(from, file string) (*Origin, error) {
	o := &Origin{Tries: 8, Wait: time.Second, Idle: 30 * time.Second, Whole: 15 * time.Minute}
	if !strings.Contains(from, "://") {
		if o.folder = from; filepath.Base(from) == file {
			o.folder = filepath.Dir(from)
		}
		if info, err := os.Stat(o.folder); err != nil {
			return nil, err
		} else if !info.IsDir() {
			return nil, fmt.Errorf("%s is not a folder", o.folder)
		}
		return o, nil
	}
	base, err := endpoint.Parse(from, "http", "https")
	if err != nil {
		return nil, err
	}
	if path.Base(base.Path) == file {
		base = base.JoinPath("..")
	}
	transport := endpoint.Transport()
	transport.DisableCompression = true // files are hashed as they are
	transport.ResponseHeaderTimeout = o.Idle
	o.base, o.client = base, &http.Client{Transport: transport}
	return o, nil
}

// Close closes idle connections.
func (o *Origin) Close() {
	if o.client != nil {
		o.client.CloseIdleConnections()
	}
}

// Read returns how many bytes of files have been read and accepted.
func (o *Origin) Read() int64 { return o.read.Load() }

// Get returns a file of at most the given size that check accepts. Errors name the file.
func (o *Origin) Get(ctx context.Context, name string, most int64, check func(content []byte) error) ([]byte, error) {
	wait := o.Wait
	for try := 1; ; try++ {
		content, err := o.once(ctx, name, most)
		if err == nil {
			err = check(content)
		}
		if err == nil {
			o.read.Add(int64(len(content)))
			return content, nil
		}
		var final *finalError
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err = fmt.Errorf("%s: %w", name, err); o.base == nil || errors.As(err, &final) || try >= o.Tries {
			return nil, err
		}
		slog.Warn("cannot read a file: trying again", "error", err, "again_in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		wait = min(2*wait, longestWait)
	}
}

// finalError is the error of a request that must not be repeated.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

func (o *Origin) once(ctx context.Context, name string, most int64) ([]byte, error) {
	if o.base != nil {
		return o.download(ctx, name, most)
	}
	file, err := os.Open(filepath.Join(o.folder, name))
	if err != nil {
		return nil, endOfPath(err)
	}
	defer file.Close()
	return readAll(file, most)
}

// endOfPath removes the path, which the caller names, from an error of package os.
func endOfPath(err error) error {
	var about *os.PathError
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}

// ErrTooLong means that a file has more bytes than it may have.
var ErrTooLong = errors.New("the file is too long")

var errIdle = errors.New("the server sends nothing more")

func (o *Origin) download(ctx context.Context, name string, most int64) ([]byte, error) {
	ctx, stop := context.WithTimeoutCause(ctx, o.Whole, fmt.Errorf("the server takes longer than %v", o.Whole))
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(o.Idle, func() { cancel(errIdle) })
	defer idle.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.base.JoinPath(name).String(), nil)
	if err != nil {
		return nil, &finalError{endpoint.WithoutURL(err)}
	}
	response, err := o.client.Do(request)
	if err != nil {
		return nil, causeOf(ctx, endpoint.WithoutURL(err))
	}
	defer response.Body.Close()
	switch code := response.StatusCode; {
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return nil, fmt.Errorf("the server answers %s", response.Status)
	case code != http.StatusOK:
		return nil, &finalError{fmt.Errorf("the server answers %s", response.Status)}
	case response.ContentLength > most:
		return nil, tooLong(most)
	}
	content, err := readAll(&watched{response.Body, idle, o.Idle}, most)
	return content, causeOf(ctx, err)
}

// causeOf returns why a context ended, if an error is due to that.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// watched sets back a timer with everything that it reads.
type watched struct {
	io.Reader
	timer *time.Timer
	idle  time.Duration
}

func (w *watched) Read(into []byte) (int, error) {
	n, err := w.Reader.Read(into)
	if n > 0 {
		w.timer.Reset(w.idle)
	}
	return n, err
}

func readAll(from io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		err = tooLong(most)
	}
	return content, err
}

func tooLong(most int64) error { return fmt.Errorf("%w: more than %d bytes", ErrTooLong, most) }
