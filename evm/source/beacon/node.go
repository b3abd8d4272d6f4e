package beacon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"ashlar/endpoint"
	"ashlar/evm/source/beacon/lightclient"

	"github.com/ethereum/go-ethereum/common"
)

const (
	// answerTime is the timeout of a request.
	answerTime = 10 * time.Second
	// answerBytes bounds an answer. A sync committee of 512 takes 50 kB.
	answerBytes = 4 << 20
)

// errAbsent means that a node does not have what it was asked for.
var errAbsent = errors.New("the node does not have it")

// Node is a client of one consensus client's beacon API.
type Node struct {
	name     string
	template *http.Request
	base     *url.URL // of the API's first version
	http     *http.Client
}

// NewNode returns a client that is shown with a name, which has no secrets. The request has the
// URL, without eth/v1, and the headers that the API wants.
func NewNode(name string, template *http.Request) *Node {
	root := *template.URL
	if root.Path == "" {
		root.Path = "/" // else a joined path is relative
	}
	return &Node{name: name, template: template, base: root.JoinPath("eth", "v1"), http: &http.Client{
		Transport: endpoint.Transport(),
		// A redirect would take the headers, and with them the key, elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// get asks for a path below eth/v1. Errors have no URL, which may hold a key.
func (n *Node) get(ctx context.Context, into any, query url.Values, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	r := n.template.Clone(ctx)
	r.URL = n.base.JoinPath(path...)
	if len(query) > 0 {
		all := r.URL.Query()
		for name, values := range query {
			all[name] = values
		}
		r.URL.RawQuery = all.Encode()
	}
	r.Header.Set("Accept", "application/json")
	answer, err := n.http.Do(r)
	if err != nil {
		return endpoint.WithoutURL(err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return errAbsent
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("HTTP status %d", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerBytes+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the answer: %w", endpoint.WithoutURL(err))
	case len(body) > answerBytes:
		return fmt.Errorf("the answer is larger than %d bytes", answerBytes)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// versioned is data with the name of its fork, which older clients leave out.
type versioned struct {
	Version string          `json:"version"`
	Data    json.RawMessage `json:"data"`
}

// decode decodes data of a fork that is known.
func (v *versioned) decode(into any) error {
	if v.Version != "" && !lightclient.KnowsFork(v.Version) {
		return fmt.Errorf("%w %q: install a later version", lightclient.ErrUnknownFork, v.Version)
	}
	if err := json.Unmarshal(v.Data, into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// bootstrap returns the bootstrap of a block.
func (n *Node) bootstrap(ctx context.Context, block common.Hash) (*lightclient.Bootstrap, error) {
	var answer versioned
	if err := n.get(ctx, &answer, nil, "beacon", "light_client", "bootstrap", block.Hex()); err != nil {
		return nil, err
	}
	b := new(lightclient.Bootstrap)
	return b, answer.decode(b)
}

// update returns the best update of a period.
func (n *Node) update(ctx context.Context, period uint64) (*lightclient.Update, error) {
	// One at a time: some nodes refuse a range if one of its periods has no update yet.
	query := url.Values{"start_period": {strconv.FormatUint(period, 10)}, "count": {"1"}}
	var answer []versioned
	if err := n.get(ctx, &answer, query, "beacon", "light_client", "updates"); err != nil {
		return nil, err
	}
	if len(answer) == 0 {
		return nil, errAbsent
	}
	u := new(lightclient.Update)
	return u, answer[0].decode(u)
}

// latest returns the latest update of a kind: finality or optimistic.
func (n *Node) latest(ctx context.Context, kind string) (*lightclient.Update, error) {
	var answer versioned
	if err := n.get(ctx, &answer, nil, "beacon", "light_client", kind+"_update"); err != nil {
		return nil, err
	}
	u := new(lightclient.Update)
	return u, answer.decode(u)
}
