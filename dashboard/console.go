package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"ashlar/account"
)

// consolePage is the data of the template console.
type consolePage struct {
	Choice  *form // of the network, the key and the method
	Form    *form // of the request
	Network string
	Key     string
	Method  string
	Answer  *consoleAnswer // nil before a request is sent
}

// consoleAnswer is the answer that a client would get.
type consoleAnswer struct {
	Status int
	Mood   string // CSS class of the status badge
	Fault  string // JSON-RPC errors in the answer; empty if there are none
	Took   string
	Size   int64
	Text   string // indented, unless larger than maxIndented
	Cut    int64  // number of bytes shown if the answer was cut, else 0
	Retry  string // time until a rejected request may succeed; empty if not rejected, or not known
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
	p, network, err := v.consolePage(query.Get("network"), query.Get("key"), query.Get("method"))
	if err != nil {
		return err
	}
	if method := network.method(p.Method); method != nil {
		p.Form.fill("request", v.exampleRequest(method))
	}
	return v.show(200, "console", "Console", p)
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
	if method := chosen.method(byMethod.Value); method != nil {
		byMethod.Hint = method.Summary
	}
	request := &field{Name: "request", Label: "Request", Kind: kindText, Rows: 12, Hint: "One call, or a batch of them. Ctrl-Enter sends it."}
	return &consolePage{
		Choice: newForm(byNetwork, byKey, byMethod), Form: newForm(request),
		Network: byNetwork.Value, Key: byKey.Value, Method: byMethod.Value,
	}, chosen, nil
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
	has := func(value string) bool {
		return slices.ContainsFunc(f.Choices, func(c choice) bool { return c.Value == value })
	}
	switch {
	case has(f.Value):
	case has(preferred):
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
	request, err := json.MarshalIndent(struct {
		Version string          `json:"jsonrpc"`
		ID      int             `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}{"2.0", 1, method.Name, params}, "", "  ")
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
	p.Form.read(v.r)
	if network == nil {
		p.Form.Problem = "No network is served."
	}
	if !p.Form.ok() {
		return v.show(statusOf(p.Form), "console", "Console", p)
	}
	key, err := v.callingKey(p.Key)
	if err != nil {
		return err
	}
	began := time.Now()
	call := Call{network.Name, key, client(v.r), []byte(p.Form.value("request"))}
	v.dashboard.config.Call(v.r.Context(), call, func(a Answer) { p.Answer = describeAnswer(a, time.Since(began)) })
	return v.show(200, "console", "Console", p)
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
	c := &consoleAnswer{Status: a.Status, Fault: faultOf(a.Body), Took: duration(took), Size: int64(len(a.Body))}
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
