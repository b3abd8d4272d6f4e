// Package api serves the HTTP API with which scripts manage keys and teams.
package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// openAPI describes the API. A test compares its paths with the routes.
//
//go:embed api.json
var openAPI []byte

// failed is the body of an answer to a request that failed.
type failed struct {
	Error string `json:"error"`
	Field string `json:"field,omitempty"` // the member that is not valid
}

// call is one request, by the owner of a token.
type call struct {
	config *site.Config
	r      *http.Request
	who    *account.Account // the token's
	site.Chosen
	keys   *account.Keyring // of the chosen account
	header http.Header      // of the answer
}

// operation answers requests of a route.
type operation struct {
	needs site.Needs
	serve func(*call) (status int, answer any, err error)
}

// routes returns the operations by their patterns.
func routes() map[string]operation {
	viewer, member := site.Needs{Role: account.TeamViewer}, site.Needs{Role: account.TeamMember}
	seeing, managing := site.Needs{Role: account.TeamViewer, Operators: true}, site.Needs{Role: account.TeamOwner, Operators: true}
	all := map[string]operation{
		"GET /api/v1/teams":                                    {viewer, (*call).teams},
		"GET /api/v1/teams/{team}/members":                     {seeing, (*call).members},
		"PATCH /api/v1/teams/{team}/members/{member}":          {managing, (*call).setRole},
		"DELETE /api/v1/teams/{team}/members/{member}":         {managing, (*call).removeMember},
		"GET /api/v1/teams/{team}/invitations":                 {managing, (*call).invitations},
		"POST /api/v1/teams/{team}/invitations":                {managing, (*call).invite},
		"DELETE /api/v1/teams/{team}/invitations/{invitation}": {managing, (*call).withdraw},
	}
	for pattern, o := range map[string]operation{
		"GET /keys":               {viewer, (*call).list},
		"POST /keys":              {member, (*call).create},
		"GET /keys/{key}":         {viewer, (*call).get},
		"PATCH /keys/{key}":       {member, (*call).edit},
		"DELETE /keys/{key}":      {member, (*call).revoke},
		"POST /keys/{key}/rotate": {member, (*call).rotate},
	} {
		method, path, _ := strings.Cut(pattern, " ")
		all[method+" /api/v1"+path] = o
		all[method+" /api/v1/teams/{team}"+path] = o
	}
	return all
}

// Handlers returns the handlers of the API, by pattern. It takes tokens only, no sessions, so that
// pages of other sites cannot use it with a visitor's cookie.
func Handlers(config *site.Config) map[string]http.Handler {
	handlers := map[string]http.Handler{
		"GET /api/openapi.json": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(openAPI)
		}),
	}
	for pattern, o := range routes() {
		handlers[pattern] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(config, w, r, o) })
	}
	return handlers
}

// identify returns the owner of a request's token, and the account that the request is about, if the
// owner may do this. A token has the rights that its owner has now: a role in a team is looked up for
// each request.
func identify(config *site.Config, r *http.Request, o operation) (owner account.Account, chosen site.Chosen, err error) {
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if owner, err = config.Accounts.WithToken(text, site.Client(r)); err == nil {
		chosen, err = site.Choose(config.Accounts, &owner, r, o.needs)
	}
	return owner, chosen, err
}

// serve answers a request.
func serve(config *site.Config, w http.ResponseWriter, r *http.Request, o operation) {
	if _, _, err := identify(config, r, o); err != nil {
		refuse(config, w, r, err)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(config, w, r, errBody)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	// A client may take a minute to send a body, and a token or a role that has ended meanwhile must not count.
	owner, chosen, err := identify(config, r, o)
	if err != nil {
		refuse(config, w, r, err)
		return
	}
	by := account.Actor{Account: owner.ID, Address: site.Client(r), Via: "token"}
	r = r.WithContext(account.WithActor(r.Context(), by))
	status, answer, err := o.serve(&call{config, r, &owner, chosen, config.Keys.Of(chosen.Account.ID), w.Header()})
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
	var role *site.RoleError
	switch {
	case errors.As(err, &soon):
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(soon.Wait.Seconds()))))
		writeJSON(w, http.StatusTooManyRequests, failed{Error: soon.Error()})
	case errors.Is(err, account.ErrToken):
		w.Header().Set("WWW-Authenticate", "Bearer")
		writeJSON(w, http.StatusUnauthorized, failed{Error: err.Error()})
	case errors.Is(err, account.ErrNoKey):
		writeJSON(w, http.StatusNotFound, failed{Error: account.ErrNoKey.Error()})
	case errors.Is(err, account.ErrNoTeam), errors.Is(err, account.ErrNoAccount):
		writeJSON(w, http.StatusNotFound, failed{Error: account.ErrNoTeam.Error()})
	case errors.Is(err, account.ErrKeyVersion):
		writeJSON(w, http.StatusPreconditionFailed, failed{Error: err.Error()})
	case errors.Is(err, errNoMember), errors.Is(err, account.ErrNoInvitation):
		writeJSON(w, http.StatusNotFound, failed{Error: err.Error()})
	case errors.As(err, &role), errors.Is(err, account.ErrTooMany), errors.Is(err, account.ErrDisabled), errors.Is(err, account.ErrLastOwner):
		writeJSON(w, http.StatusForbidden, failed{Error: err.Error()})
	case errors.As(err, &invalid):
		writeJSON(w, http.StatusUnprocessableEntity, failed{invalid.Problem, string(invalid.Field)})
	case errors.Is(err, errBody):
		writeJSON(w, http.StatusBadRequest, failed{Error: err.Error()})
	default:
		config.Log.ErrorContext(r.Context(), "a request to the API failed", "route", r.Pattern, "error", err)
		writeJSON(w, http.StatusInternalServerError, failed{Error: "internal error, which was logged"})
	}
}

// read decodes the body of a request, which may be empty.
func (c *call) read(into any) error {
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
