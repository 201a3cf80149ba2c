package data

import (
	"fmt"
	"mime"
	"net/url"
	"strconv"
	"strings"

	"keep-proxy/internal/fakes/server"
)

const formType = "application/x-www-form-urlencoded"

// readForm gives form, the first value of each name, and form_all, all of them. Both are empty for another body.
func readForm(r *server.Request, v values) {
	v["form"], v["form_all"] = map[string]any{}, map[string]any{}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != formType {
		return
	}
	if form, err := url.ParseQuery(string(r.Body)); err == nil {
		v["form"], v["form_all"] = firstOf(form)
	}
}

// firstOf are the first value of each name, and all values.
func firstOf(given map[string][]string) (first, all map[string]any) {
	first, all = map[string]any{}, map[string]any{}
	for name, list := range given {
		first[name] = list[0]
		texts := make([]any, len(list))
		for i, text := range list {
			texts[i] = text
		}
		all[name] = texts
	}
	return first, all
}

// nestedForm is what a form says in names such as metadata[a] and items[0][price]. Names that count from 0 are a list.
func nestedForm(form, name any) (any, error) {
	all, ok := form.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%v is no form", form)
	}
	out := map[string]any{}
	for key, value := range all {
		rest, ok := strings.CutPrefix(key, fmt.Sprint(name)+"[")
		if !ok {
			continue
		}
		steps := strings.Split(strings.TrimSuffix(rest, "]"), "][")
		at := out
		for _, step := range steps[:len(steps)-1] {
			below, ok := at[step].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[step] = below
			}
			at = below
		}
		at[steps[len(steps)-1]] = value
	}
	return listed(out), nil
}

// listed makes lists of maps whose names count from 0.
func listed(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	list := make([]any, 0, len(m))
	for i := range len(m) {
		if item, ok := m[strconv.Itoa(i)]; ok {
			list = append(list, listed(item))
		}
	}
	if len(m) > 0 && len(list) == len(m) {
		return list
	}
	for name := range m {
		m[name] = listed(m[name])
	}
	return m
}
