package node

import (
	"fmt"
	"io"
	"net/http"
)

// boundedTransport bounds the bodies of answers, as they are after decompression.
// go-ethereum's client does so over WebSocket alone.
type boundedTransport struct {
	to   *http.Transport
	most int64
}

// RoundTrip implements [http.RoundTripper].
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.to.RoundTrip(request)
	if err == nil {
		response.Body = &boundedBody{body: response.Body, left: t.most, most: t.most}
	}
	return response, err
}

// CloseIdleConnections is for [http.Client.CloseIdleConnections].
func (t *boundedTransport) CloseIdleConnections() { t.to.CloseIdleConnections() }

// boundedBody fails where a body goes on after so many bytes.
type boundedBody struct {
	body io.ReadCloser
	left int64
	most int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is larger than %d bytes", b.most)
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (b *boundedBody) Close() error { return b.body.Close() }
