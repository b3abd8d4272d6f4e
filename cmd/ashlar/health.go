package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// healthTime bounds a health check.
const healthTime = 5 * time.Second

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
			err = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				err = errors.Join(fmt.Errorf("%s answers %s", url, response.Status), err)
			}
			return err
		},
	}
	c.Flags().StringVar(&url, "url", "http://127.0.0.1:8545/healthz", "what to ask")
	return c
}
