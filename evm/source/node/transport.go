package node

import (
	"fmt"
	"io"
	"net/http"
)

// boundedTransport limits the size of decompressed response bodies. go-ethereum's client
// limits them only over WebSocket.
type boundedTransport struct {
	to   *http.Transport
	most int64 // bytes
}

// RoundTrip implements [http.RoundTripper].
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.to.RoundTrip(request)
	if err == nil {
		response.Body = &boundedBody{body: response.Body, left: t.most, most: t.most}
	}
	return response, err
}

// CloseIdleConnections supports [http.Client.CloseIdleConnections].
func (t *boundedTransport) CloseIdleConnections() { t.to.CloseIdleConnections() }

// boundedBody fails when a body exceeds its limit.
type boundedBody struct {
	body io.ReadCloser
	left int64 // bytes until the limit
	most int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the response is larger than %d bytes", b.most)
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (b *boundedBody) Close() error { return b.body.Close() }
