package dashboard

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
	"ashlar/jsonrpc"
)

// consolePage is the data of the template console.
type consolePage struct {
	Choice   *form       // of the network, the key and the method
	Params   *paramsForm // nil if no network is served
	Form     *form       // of the request
	Network  string
	Key      string
	Method   string
	Summary  string         // what the method does
	Note     string         // why the example is answered with an error; empty if it is not
	Snippets []Snippet      // programs that send the request
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

func (v *visit) console() error {
	query := v.r.URL.Query()
	past, repeats := v.pastRequest(query.Get("again"))
	if repeats {
		query.Set("network", past.Network)
		query.Set("method", past.Method)
	}
	p, network, err := v.consolePage(query.Get("network"), query.Get("key"), query.Get("method"))
	if err != nil {
		return err
	}
	switch method := network.method(p.Method); {
	case repeats:
		p.Form.fill("request", past.Request)
	case method != nil:
		p.Form.fill("request", v.exampleRequest(method))
	}
	return v.showConsole(p, network)
}

// showConsole shows the console with programs that send its request.
func (v *visit) showConsole(p *consolePage, network *Network) error {
	if network != nil {
		p.Snippets = v.callSnippets(network, p.Key, p.Form.value("request"))
	}
	p.History = v.history()
	return v.show(statusOf(p.Form), "console", "Console", p)
}

// consolePage fills the choices. A choice that does not exist is replaced by the first one.
// chosen is nil if no network is served.
func (v *visit) consolePage(network, key, method string) (p *consolePage, chosen *Network, err error) {
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return nil, nil, err
	}
	keys, err := v.own().List(v.r.Context())
	if err != nil {
		return nil, nil, err
	}
	byNetwork := &field{Name: "network", Label: "Network", Kind: kindSelect, Value: network}
	byKey := &field{Name: "key", Label: "Key", Kind: kindSelect, Value: key, Choices: []choice{{ownSession, "none, my session"}}}
	byMethod := &field{Name: "method", Label: "Method", Kind: kindSelect, Value: method}
	for _, n := range networks {
		byNetwork.Choices = append(byNetwork.Choices, choice{n.Name, n.Name})
		if chosen == nil || n.Name == network {
			chosen = &n
		}
	}
	for _, k := range slices.Backward(keys) {
		if !k.Ended(time.Now()) {
			byKey.Choices = append(byKey.Choices, choice{k.ID.String(), keyName(&k)})
		}
	}
	if chosen != nil {
		for _, m := range chosen.Methods {
			if m.Stream {
				continue
			}
			byMethod.Choices = append(byMethod.Choices, choice{m.Name, m.Name})
		}
	}
	byNetwork.settle("")
	byKey.settle("")
	byMethod.settle(preferredMethod)
	request := &field{Name: "request", Label: "Request", Kind: kindText, Rows: 14, Hint: "One call, or a batch of them. Ctrl-Enter sends it."}
	p = &consolePage{
		Choice: newForm(byNetwork, byKey, byMethod), Form: newForm(request),
		Network: byNetwork.Value, Key: byKey.Value, Method: byMethod.Value,
	}
	if method := chosen.method(p.Method); method != nil {
		p.Summary, p.Note = method.Summary, method.ExampleFails
		p.Params = newParamsForm(v.r.Context(), chosen, method.Method)
	}
	return p, chosen, nil
}

// method returns the method with a name, or nil if the network does not have it.
func (n *Network) method(name string) *Method {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.Methods, func(m Method) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &n.Methods[i]
}

// settle replaces a value that is not among the choices by the preferred one, or else by
// the first.
func (f *field) settle(preferred string) {
	switch {
	case f.offers(f.Value):
	case f.offers(preferred):
		f.Value = preferred
	case len(f.Choices) > 0:
		f.Value = f.Choices[0].Value
	default:
		f.Value = ""
	}
}

// preferredMethod is selected first on networks that have it.
const preferredMethod = "eth_getBlockByNumber"

// exampleRequest returns a request that calls a method with its example parameters.
func (v *visit) exampleRequest(method *Method) string {
	params, err := method.ExampleParams(v.r.Context())
	if err != nil { // no data for an example, as on a network without blocks
		params = json.RawMessage("[]")
	}
	return requestText(method.Name, params)
}

// requestText returns a request, indented.
func requestText(method string, params json.RawMessage) string {
	request, err := json.MarshalIndent(struct {
		Version string          `json:"jsonrpc"`
		ID      int             `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}{"2.0", 1, method, params}, "", "  ")
	if err != nil {
		return ""
	}
	return string(request)
}

// send handles the form of console. It answers with the page instead of a redirect, because
// repeating the request changes nothing.
func (v *visit) send() error {
	typed := v.r.PostForm
	p, network, err := v.consolePage(typed.Get("network"), typed.Get("key"), typed.Get("method"))
	if err != nil {
		return err
	}
	if typed.Get("do") == "params" && p.Params != nil {
		v.fillRequest(p)
	} else {
		p.Form.read(v.r)
	}
	if network == nil {
		p.Form.Problem = "No network is served."
	}
	if !p.Form.ok() {
		return v.showConsole(p, network)
	}
	key, err := v.callingKey(p.Key)
	if err != nil {
		return err
	}
	request, first := v.resolve(p, network, key)
	began := time.Now()
	call := Call{network.Name, key, client(v.r), []byte(request)}
	v.dashboard.config.Call(v.r.Context(), call, func(a Answer) { p.Answer = describeAnswer(a, time.Since(began)) })
	p.Answer.First = first
	p.Form.fill("request", request)
	v.remember(pastRequest{network.Name, p.Method, request, p.Answer.Fault, time.Now().Unix()})
	return v.showConsole(p, network)
}

// fillRequest writes the request that the form of the parameters describes. A problem with a
// parameter is one with the request too.
func (v *visit) fillRequest(p *consolePage) {
	p.Params.form.read(v.r)
	params := p.Params.params()
	if wrong := p.Params.form.Wrong(); len(wrong) > 0 {
		p.Form.Problem = "Correct the parameter " + wrong[0].Label + "."
	}
	p.Form.fill("request", requestText(p.Method, params))
}

// maxFirst is the maximum size in bytes of a request in which results of other methods are
// filled in.
const maxFirst = 64 << 10

// resolve fills in values that only another method can provide, such as the identifier of a
// filter: it calls that method with its example, and names it in first.
func (v *visit) resolve(p *consolePage, network *Network, key *account.Key) (request string, first []string) {
	request = p.Form.value("request")
	method := network.method(p.Method)
	if method == nil || len(request) > maxFirst {
		return request, nil
	}
	for _, param := range method.Params {
		place := strconv.Quote(jsonrpc.ResultOf(param.From))
		source := network.method(param.From)
		if source == nil || source.Stream || !strings.Contains(request, place) {
			continue
		}
		call := Call{network.Name, key, client(v.r), []byte(v.exampleRequest(source))}
		v.dashboard.config.Call(v.r.Context(), call, func(a Answer) {
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
func (v *visit) callingKey(chosen string) (*account.Key, error) {
	if chosen == ownSession {
		return v.dashboard.config.Keys.Session(v.who.ID)
	}
	k, err := v.own().Find(chosen)
	return &k, err
}

func describeAnswer(a Answer, took time.Duration) *consoleAnswer {
	c := &consoleAnswer{Status: a.Status, Fault: faultOf(a.Body), Help: explainAnswer(a.Body), Took: duration(took), Size: int64(len(a.Body))}
	switch {
	case a.Status != http.StatusOK:
		c.Mood = "bad"
	case c.Fault == "": // else the status is neither good nor bad: the error is in the answer
		c.Mood = "good"
	}
	if a.Retry > 0 {
		c.Retry = duration(a.Retry)
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
	return fmt.Sprintf("%d of %s failed", failed, amount(uint64(len(batch)), "call"))
}

// duration formats a waiting time.
func duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
