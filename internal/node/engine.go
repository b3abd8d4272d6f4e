package node

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// engineAddress matches the service's log line with the address of its Engine API.
var engineAddress = regexp.MustCompile(`serving a consensus client.* address=([0-9.:]+)`)

// Engine waits until the service serves the Engine API, and returns a client that uses the
// secret in a file.
func (p *Process) Engine(ctx context.Context, secretFile string) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if found := engineAddress.FindStringSubmatch(p.Output()); found != nil {
			return NewEngineClient("http://"+found[1], secretFile)
		}
		select {
		case <-p.Done():
			return nil, fmt.Errorf("ended before it listened to a consensus client:\n%s", p.Output())
		case <-ctx.Done():
			return nil, fmt.Errorf("did not listen to a consensus client: %w, its last words:\n%s", ctx.Err(), p.Output())
		case <-tick.C:
		}
	}
}

// NewEngineClient returns a client that authenticates each request with the secret in a file.
func NewEngineClient(url, secretFile string) (*Client, error) {
	text, err := os.ReadFile(secretFile)
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(text)), "0x"))
	if err != nil {
		return nil, err
	}
	c := NewClient(url)
	c.http.Transport = &authorized{secret, c.http.Transport}
	return c, nil
}

// authorized adds a token to each request.
type authorized struct {
	secret []byte
	to     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{IssuedAt: jwt.NewNumericDate(time.Now())}).SignedString(a.secret)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return a.to.RoundTrip(r)
}
