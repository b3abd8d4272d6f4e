package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	healthTime = 5 * time.Second // of a health check
	maxReason  = 4 << 10         // bytes of an answer that are shown
)

func healthCommand() *cobra.Command {
	var text string
	c := &cobra.Command{
		Use:   "health [--url URL]",
		Short: "Ask a server whether it is healthy, for containers that have no other program",
		Long: `Asks a server's /healthz or /readyz, and exits with 0 if the answer is 200.

A listener with TLS may be named with http, too. At an address of this machine its certificate
is not checked, because it is for other names. A listener whose certificates come by ACME has
none for an address: a server that says so is alive, which is enough for /healthz. For /readyz
ask the operator's listener.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			asked, err := url.Parse(text)
			if err != nil || asked.Scheme != "http" && asked.Scheme != "https" || asked.Host == "" {
				return fmt.Errorf("%w: --url %q: expected a URL such as http://127.0.0.1:8545/readyz", errUsage, text)
			}
			ctx, cancel := context.WithTimeout(c.Context(), healthTime)
			defer cancel()
			return askHealth(ctx, *asked)
		},
	}
	c.Flags().StringVar(&text, "url", "http://127.0.0.1:8545/healthz", "what to ask")
	return c
}

// askHealth returns why a server is not healthy. A listener with TLS answers 400 to a plain request.
func askHealth(ctx context.Context, asked url.URL) error {
	status, err := askOnce(ctx, asked)
	if status != http.StatusBadRequest || asked.Scheme != "http" {
		return err
	}
	asked.Scheme = "https"
	if status, overTLS := askOnce(ctx, asked); status != 0 || overTLS == nil || errors.Is(overTLS, errNoCertificate) {
		return overTLS
	}
	return err
}

// askOnce asks a server. Without an answer the status is 0.
func askOnce(ctx context.Context, asked url.URL) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), http.NoBody)
	if err != nil {
		return 0, err
	}
	local := isLoopback(asked.Hostname())
	transport := &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{InsecureSkipVerify: local}}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if local && refusesHandshake(err) {
		if asked.Path == pathAlive {
			return 0, nil
		}
		return 0, fmt.Errorf("%s: %w: %w", asked.Redacted(), errNoCertificate, err)
	}
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return response.StatusCode, nil
	}
	reason, err := io.ReadAll(io.LimitReader(response.Body, maxReason))
	return response.StatusCode, errors.Join(fmt.Errorf("%s answers %s: %s", asked.Redacted(), response.Status, bytes.TrimSpace(reason)), err)
}

// isLoopback reports whether a host is this machine, so that nobody else can answer.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || strings.EqualFold(host, "localhost")
}

// errNoCertificate means that a listener with TLS has no certificate to show at an address.
var errNoCertificate = errors.New("the listener has no certificate for an address (want the URL of the operator's listener)")

// pathAlive is the path whose answer says that the process works.
const pathAlive = "/healthz"

// refusesHandshake reports whether a server has answered a TLS handshake with an alert: it has no certificate
// for an address.
func refusesHandshake(err error) bool {
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" // of package tls, which exports no type for it
}
