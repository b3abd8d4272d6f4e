package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

const (
	healthTime = 5 * time.Second // of a health check
	maxReason  = 4 << 10         // bytes of an answer that are shown
)

func healthCommand() *cobra.Command {
	var url string
	c := &cobra.Command{
		Use:   "health [--url URL]",
		Short: "Ask a server whether it is healthy, for containers that have no other program",
		Long:  `Asks a server's /healthz or /readyz, and exits with 0 if the answer is 200.`,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, url, http.NoBody)
			if err != nil || request.URL.Scheme != "http" && request.URL.Scheme != "https" || request.URL.Host == "" {
				return fmt.Errorf("%w: --url %q: expected a URL such as http://127.0.0.1:8545/readyz", errUsage, url)
			}
			response, err := (&http.Client{Timeout: healthTime}).Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			reason, err := io.ReadAll(io.LimitReader(response.Body, maxReason))
			return errors.Join(fmt.Errorf("%s answers %s: %s", url, response.Status, bytes.TrimSpace(reason)), err)
		},
	}
	c.Flags().StringVar(&url, "url", "http://127.0.0.1:8545/healthz", "what to ask")
	return c
}
