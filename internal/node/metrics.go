package node

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Metric returns the value of a series in the metrics that a service shows at its operator's
// address: the name of the metric, with its labels if it has any.
func Metric(ctx context.Context, operator, series string) (float64, error) {
	url := "http://" + operator + "/metrics"
	text, err := Get(ctx, url)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", url, series)
}

// Get returns the body of the page at url. A status other than 200 is an error.
func Get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %s", url, response.Status)
	}
	return body, err
}
