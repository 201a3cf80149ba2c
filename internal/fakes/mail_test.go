package fakes_test

import (
	"net/http"
	"testing"

	"keep-proxy/internal/fakes/apitest"
)

func TestADraftIsSentOnce(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, api(t, "mail"))
	var draft struct{ ID, To, Subject, Text, At string }
	made := b.Do("POST", "/drafts", `{"to":"bob","subject":"hello","text":"x"}`).Is(http.StatusCreated, "hello.1")
	made.Into(&draft)
	b.Do("GET", "/drafts/"+draft.ID, "").Is(http.StatusOK, draft.ID)
	b.Do("GET", "/sent?subject=hello", "").Is(http.StatusOK, `{"items":[]}`)
	b.Do("POST", "/drafts/send", `{"id":"hello.1"}`).Is(http.StatusOK, `"draft":"hello.1"`)
	b.Do("POST", "/drafts/send", `{"id":"hello.1"}`).Is(http.StatusNotFound, "no draft")
	b.Do("GET", "/drafts/"+draft.ID, "").Is(http.StatusNotFound, "no draft")
	b.Do("POST", "/send", `{"to":"bob","subject":"hello"}`).Is(http.StatusOK, "m_2")
	b.Do("GET", "/sent?subject=hello", "").Is(http.StatusOK, "m_1")
	if n := b.Counted().Effects("mail:hello"); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
	b.End()
	b = apitest.Continue(t, api(t, "mail"), b.LogPath())
	b.Do("GET", "/sent?subject=hello", "").Is(http.StatusOK, "m_2")
	b.Do("GET", "/drafts/"+draft.ID, "").Is(http.StatusNotFound, "no draft")
}

func TestWhoseTokenItIs(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, api(t, "mail"))
	b.Do("GET", "/me", "", "Authorization", "Bearer ann").Is(http.StatusOK, "ann@mail.test")
	b.Do("GET", "/me", "").Is(http.StatusUnauthorized, "who")
	b.Do("DELETE", "/me", "").Is(http.StatusNotFound, "has no DELETE")
}
