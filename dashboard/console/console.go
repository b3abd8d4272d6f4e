// Package console serves the pages from which users send requests and subscribe.
package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ashlar/account"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
	"ashlar/jsonrpc"
)

// Pages lists the pages of this package.
func Pages() []site.Page {
	return []site.Page{
		site.ForAccount("GET /console", account.TeamMember, show),
		site.ForAccount("POST /console", account.TeamMember, send),
		site.ForAccount("GET /console/live", account.TeamMember, showLive),
	}
}

// consolePage is the data of the template console.
type consolePage struct {
	Choice   *site.Form  // of the network, the key and the method
	Params   *paramsForm // nil if no network is served
	Form     *site.Form  // of the request
	Network  string
	Key      string
	Method   string
	Summary  string         // what the method does
	Note     string         // why the example is answered with an error; empty if it is not
	Snippets []site.Snippet // programs that send the request
	Answer   *consoleAnswer // nil before a request is sent
	History  []pastRequest
}

// consoleAnswer is the answer that a client would get.
type consoleAnswer struct {
	Status int
	Mood   string // CSS class of the status badge
	Fault  string // JSON-RPC errors in the answer; empty if there are none
	Took   string
	Size   int64
	Help   *jsonrpc.Explanation // of the error; nil if there is none
	First  []string             // methods that were called first, for values of the request
	Text   string               // indented, unless larger than maxIndented
	Cut    int64                // number of bytes shown if the answer was cut, else 0
	Retry  string               // time until a rejected request may succeed; empty if not rejected, or not known
}

const (
	// maxShown is the maximum number of bytes of an answer that a page shows.
	maxShown = 256 << 10
	// maxIndented is the maximum size in bytes of an answer that is indented. Indenting
	// handles the whole answer, in memory that no limit counts.
	maxIndented = 4 << 20
)

// ownSession is the choice to use no key: calls are charged to the account alone.
const ownSession = "session"

func show(v *site.Visit) error {
	query := v.R.URL.Query()
	past, repeats := past(v, query.Get("again"))
	if repeats {
		query.Set("network", past.Network)
		query.Set("method", past.Method)
	}
	p, network, err := newPage(v, query.Get("network"), query.Get("key"), query.Get("method"))
	if err != nil {
		return err
	}
	switch method := network.Method(p.Method); {
	case repeats:
		p.Form.Fill("request", past.Request)
	case method != nil:
		p.Form.Fill("request", v.ExampleRequest(method))
	}
	return showConsole(v, p, network)
}

// showConsole shows the console with programs that send its request.
func showConsole(v *site.Visit, p *consolePage, network *site.Network) error {
	if network != nil {
		p.Snippets = callSnippets(v, network, p.Key, p.Form.Value("request"))
	}
	p.History = history(v)
	return v.Show(site.StatusOf(p.Form), "console", "Console", p)
}

// newPage fills the choices. A choice that does not exist is replaced by the first one.
// chosen is nil if no network is served.
func newPage(v *site.Visit, network, key, method string) (p *consolePage, chosen *site.Network, err error) {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return nil, nil, err
	}
	own, err := keys.Own(v).List(v.R.Context())
	if err != nil {
		return nil, nil, err
	}
	byNetwork := &site.Field{Name: "network", Label: "Network", Kind: site.KindSelect, Value: network}
	byKey := &site.Field{Name: "key", Label: "Key", Kind: site.KindSelect, Value: key, Choices: []site.Choice{{Value: ownSession, Label: "none, my session"}}}
	byMethod := &site.Field{Name: "method", Label: "Method", Kind: site.KindSelect, Value: method}
	for _, n := range networks {
		byNetwork.Choices = append(byNetwork.Choices, site.Choice{Value: n.Name, Label: n.Name})
		if chosen == nil || n.Name == network {
			chosen = &n
		}
	}
	for _, k := range slices.Backward(own) {
		if !k.Ended(time.Now()) {
			byKey.Choices = append(byKey.Choices, site.Choice{Value: k.ID.String(), Label: keys.Name(&k)})
		}
	}
	if chosen != nil {
		for _, m := range chosen.Methods {
			if m.Stream {
				continue
			}
			byMethod.Choices = append(byMethod.Choices, site.Choice{Value: m.Name, Label: m.Name})
		}
	}
	byNetwork.Settle("")
	byKey.Settle("")
	byMethod.Settle(preferredMethod)
	request := &site.Field{Name: "request", Label: "Request", Kind: site.KindText, Rows: 14, Hint: "One call, or a batch of them. Ctrl-Enter sends it."}
	p = &consolePage{
		Choice: site.NewForm(byNetwork, byKey, byMethod), Form: site.NewForm(request),
		Network: byNetwork.Value, Key: byKey.Value, Method: byMethod.Value,
	}
	if method := chosen.Method(p.Method); method != nil {
		p.Summary, p.Note = method.Summary, method.ExampleFails
		p.Params = newParamsForm(v.R.Context(), chosen, method.Method)
	}
	return p, chosen, nil
}

// preferredMethod is selected first on networks that have it.
const preferredMethod = "eth_getBlockByNumber"

// send handles the form of console. It answers with the page instead of a redirect, because
// repeating the request changes nothing.
func send(v *site.Visit) error {
	typed := v.R.PostForm
	p, network, err := newPage(v, typed.Get("network"), typed.Get("key"), typed.Get("method"))
	if err != nil {
		return err
	}
	if typed.Get("do") == "params" && p.Params != nil {
		fillRequest(v, p)
	} else {
		p.Form.Read(v.R)
	}
	if network == nil {
		p.Form.Problem = "No network is served."
	}
	if !p.Form.OK() {
		return showConsole(v, p, network)
	}
	key, err := callingKey(v, p.Key)
	if err != nil {
		return err
	}
	request, first := resolve(v, p, network, key)
	began := time.Now()
	call := site.Call{Network: network.Name, Key: key, Client: site.Client(v.R), Request: []byte(request)}
	v.Config.Call(v.R.Context(), call, func(a site.Answer) { p.Answer = describeAnswer(a, time.Since(began)) })
	p.Answer.First = first
	p.Form.Fill("request", request)
	remember(v, pastRequest{network.Name, p.Method, request, p.Answer.Fault, time.Now().Unix()})
	return showConsole(v, p, network)
}

// fillRequest writes the request that the form of the parameters describes. A problem with a
// parameter is one with the request too.
func fillRequest(v *site.Visit, p *consolePage) {
	p.Params.form.Read(v.R)
	params := p.Params.params()
	if wrong := p.Params.form.Wrong(); len(wrong) > 0 {
		p.Form.Problem = "Correct the parameter " + wrong[0].Label + "."
	}
	p.Form.Fill("request", site.RequestText(p.Method, params))
}

// maxFirst is the maximum size in bytes of a request in which results of other methods are
// filled in.
const maxFirst = 64 << 10

// resolve fills in values that only another method can provide, such as the identifier of a
// filter: it calls that method with its example, and names it in first.
func resolve(v *site.Visit, p *consolePage, network *site.Network, key *account.Key) (request string, first []string) {
	request = p.Form.Value("request")
	method := network.Method(p.Method)
	if method == nil || len(request) > maxFirst {
		return request, nil
	}
	for _, param := range method.Params {
		place := strconv.Quote(jsonrpc.ResultOf(param.From))
		source := network.Method(param.From)
		if source == nil || source.Stream || !strings.Contains(request, place) {
			continue
		}
		call := site.Call{Network: network.Name, Key: key, Client: site.Client(v.R), Request: []byte(v.ExampleRequest(source))}
		v.Config.Call(v.R.Context(), call, func(a site.Answer) {
			var answer struct{ Result json.RawMessage }
			if json.Unmarshal(a.Body, &answer) == nil && len(answer.Result) > 0 {
				request = strings.ReplaceAll(request, place, string(answer.Result))
				first = append(first, source.Name)
			}
		})
	}
	return request, first
}

// callingKey returns the key to use for a request.
func callingKey(v *site.Visit, chosen string) (*account.Key, error) {
	if chosen == ownSession {
		return v.Config.Keys.Session(v.Account.ID)
	}
	k, err := keys.Own(v).Find(chosen)
	return &k, err
}

func describeAnswer(a site.Answer, took time.Duration) *consoleAnswer {
	c := &consoleAnswer{Status: a.Status, Fault: faultOf(a.Body), Help: explainAnswer(a.Body), Took: site.Duration(took), Size: int64(len(a.Body))}
	switch {
	case a.Status != http.StatusOK:
		c.Mood = "bad"
	case c.Fault == "": // else the status is neither good nor bad: the error is in the answer
		c.Mood = "good"
	}
	if a.Retry > 0 {
		c.Retry = site.Duration(a.Retry)
	}
	var indented bytes.Buffer
	shown := a.Body
	if len(a.Body) <= maxIndented && json.Indent(&indented, a.Body, "", "  ") == nil {
		shown = indented.Bytes()
	}
	if len(shown) == 0 {
		c.Text = "No answer: the request was a notification."
		return c
	}
	if len(shown) > maxShown {
		shown = shown[:maxShown]
		for !utf8.Valid(shown) && len(shown) > maxShown-utf8.UTFMax {
			shown = shown[:len(shown)-1]
		}
		c.Cut = int64(len(shown))
	}
	c.Text = string(shown)
	return c
}

// explainAnswer explains the error of a single answer; nil if it has none that is known.
func explainAnswer(body []byte) *jsonrpc.Explanation {
	var answer struct {
		Error *struct {
			Code    int
			Message string
		}
	}
	if len(body) > maxIndented || json.Unmarshal(body, &answer) != nil || answer.Error == nil {
		return nil
	}
	if e, ok := jsonrpc.Explain(answer.Error.Code, answer.Error.Message); ok {
		return &e
	}
	return nil
}

// faultOf describes the JSON-RPC errors in an answer, empty if there are none. It does not
// look into answers larger than maxIndented, which are no errors.
func faultOf(body []byte) string {
	type answer struct{ Error *struct{ Code int } }
	if len(body) > maxIndented {
		return ""
	}
	var one answer
	if json.Unmarshal(body, &one) == nil {
		if one.Error == nil {
			return ""
		}
		return fmt.Sprintf("error %d", one.Error.Code)
	}
	var batch []answer
	if json.Unmarshal(body, &batch) != nil {
		return ""
	}
	failed := 0
	for _, a := range batch {
		if a.Error != nil {
			failed++
		}
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s failed", site.Count(failed), site.Amount(uint64(len(batch)), "call"))
}
