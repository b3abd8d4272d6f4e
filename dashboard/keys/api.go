package keys

import (
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// openAPI describes the API. A test compares its paths with the routes.
//
//go:embed api.json
var openAPI []byte

// apiError is the body of an answer to a request that failed.
type apiError struct {
	Error string `json:"error"`
	Field string `json:"field,omitempty"` // the member that is not valid
}

// apiCall is one request to the API, by the owner of a token.
type apiCall struct {
	keys *account.Keyring // of the token's account
	r    *http.Request
}

// apiRoutes returns the operations on keys.
func apiRoutes() map[string]func(*apiCall) (status int, answer any, err error) {
	return map[string]func(*apiCall) (int, any, error){
		"GET /api/v1/keys":               (*apiCall).list,
		"POST /api/v1/keys":              (*apiCall).create,
		"GET /api/v1/keys/{key}":         (*apiCall).get,
		"PATCH /api/v1/keys/{key}":       (*apiCall).edit,
		"DELETE /api/v1/keys/{key}":      (*apiCall).revoke,
		"POST /api/v1/keys/{key}/rotate": (*apiCall).rotate,
	}
}

// API returns the handlers of the API, by pattern. It takes tokens only, no sessions, so that
// pages of other sites cannot use it with a visitor's cookie.
func API(config *site.Config) map[string]http.Handler {
	handlers := map[string]http.Handler{
		"GET /api/openapi.json": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(openAPI)
		}),
	}
	for pattern, serve := range apiRoutes() {
		handlers[pattern] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serveAPI(config, w, r, serve) })
	}
	return handlers
}

func serveAPI(config *site.Config, w http.ResponseWriter, r *http.Request, serve func(*apiCall) (int, any, error)) {
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	owner, err := config.Accounts.WithToken(text, site.Client(r))
	if err != nil {
		refuse(config, w, r, err)
		return
	}
	by := account.Actor{Account: owner.ID, Address: site.Client(r), Via: "token"}
	r = r.WithContext(account.WithActor(r.Context(), by))
	status, answer, err := serve(&apiCall{config.Keys.Of(owner.ID), r})
	if err != nil {
		refuse(config, w, r, err)
		return
	}
	writeJSON(w, status, answer)
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // on failure the client has disconnected
}

// errBody means that the body of a request to the API cannot be read.
var errBody = errors.New("the body is not valid (want JSON as /api/openapi.json describes it, with the content type application/json)")

// refuse answers a request that failed.
func refuse(config *site.Config, w http.ResponseWriter, r *http.Request, err error) {
	var soon *account.TooSoon
	var invalid *account.Invalid
	switch {
	case errors.As(err, &soon):
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(soon.Wait.Seconds()))))
		writeJSON(w, http.StatusTooManyRequests, apiError{Error: soon.Error()})
	case errors.Is(err, account.ErrToken):
		w.Header().Set("WWW-Authenticate", "Bearer")
		writeJSON(w, http.StatusUnauthorized, apiError{Error: err.Error()})
	case errors.Is(err, account.ErrNoKey):
		writeJSON(w, http.StatusNotFound, apiError{Error: account.ErrNoKey.Error()})
	case errors.Is(err, account.ErrTooMany), errors.Is(err, account.ErrDisabled):
		writeJSON(w, http.StatusForbidden, apiError{Error: err.Error()})
	case errors.As(err, &invalid):
		writeJSON(w, http.StatusUnprocessableEntity, apiError{invalid.Problem, string(invalid.Field)})
	case errors.Is(err, errBody):
		writeJSON(w, http.StatusBadRequest, apiError{Error: err.Error()})
	default:
		config.Log.ErrorContext(r.Context(), "a request to the API failed", "route", r.Pattern, "error", err)
		writeJSON(w, http.StatusInternalServerError, apiError{Error: "internal error, which was logged"})
	}
}

// read decodes the body of a request, which may be empty.
func (c *apiCall) read(into any) error {
	body := json.NewDecoder(c.r.Body)
	body.DisallowUnknownFields()
	switch err := body.Decode(into); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return errBody
	}
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return errBody
	}
	return nil
}

// show returns the ID in the path. Keys are not named by their names here.
func (c *apiCall) show() (string, error) {
	var id account.KeyID
	if id.UnmarshalText([]byte(c.r.PathValue("key"))) != nil {
		return "", account.ErrNoKey
	}
	return id.String(), nil
}

func (c *apiCall) list() (int, any, error) {
	all, err := c.keys.List(c.r.Context())
	if all == nil {
		all = []account.Key{}
	}
	return http.StatusOK, all, err
}

func (c *apiCall) create() (int, any, error) {
	var n account.NewKey
	if err := c.read(&n); err != nil {
		return 0, nil, err
	}
	issued, err := c.keys.Create(c.r.Context(), n)
	return http.StatusCreated, issued, err
}

func (c *apiCall) get() (int, any, error) {
	id, err := c.show()
	if err != nil {
		return 0, nil, err
	}
	k, err := c.keys.Find(id)
	return http.StatusOK, k, err
}

func (c *apiCall) edit() (int, any, error) {
	var e struct {
		Name    *string        `json:"name"`
		Rules   *account.Rules `json:"rules"`
		Expires *time.Time     `json:"expires"`
	}
	id, err := c.show()
	if err == nil {
		err = c.read(&e)
	}
	if err != nil {
		return 0, nil, err
	}
	k, err := c.keys.Edit(c.r.Context(), id, account.KeyEdit(e))
	return http.StatusOK, k, err
}

func (c *apiCall) revoke() (int, any, error) {
	id, err := c.show()
	if err != nil {
		return 0, nil, err
	}
	k, err := c.keys.Revoke(c.r.Context(), id)
	return http.StatusOK, k, err
}

func (c *apiCall) rotate() (int, any, error) {
	var asked struct {
		OverlapSeconds int64 `json:"overlapSeconds"`
	}
	id, err := c.show()
	if err == nil {
		err = c.read(&asked)
	}
	if err != nil {
		return 0, nil, err
	}
	if asked.OverlapSeconds < 0 || asked.OverlapSeconds > int64(account.MaxOverlap/time.Second) {
		return 0, nil, &account.Invalid{Field: account.FieldOverlap, Problem: "overlapSeconds: expected from 0 to " + strconv.FormatInt(int64(account.MaxOverlap/time.Second), 10)}
	}
	issued, err := c.keys.Rotate(c.r.Context(), id, time.Duration(asked.OverlapSeconds)*time.Second)
	return http.StatusOK, issued, err
}
