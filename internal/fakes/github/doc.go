// Package github is a fake of the part of GitHub's REST API that issues need.
// It is made from GitHub's public documentation of issues, pull requests and
// pagination. There is no idempotency key: every accepted POST makes another
// object.
//
// Every mutation needs Authorization, else 401. Errors are {"message",
// "errors"?}. Owner and repository are compared without regard to case; every
// repository exists. Issues and pull requests share the numbers of their
// repository.
//
//	POST /repos/{owner}/{repo}/issues
//	    {"title", "body"?, "labels"?, "assignees"?} → 201, Location, the issue.
//	    The body is kept byte for byte. Else 400 for no JSON, 422 without title.
//	PATCH /repos/{owner}/{repo}/issues/{number}
//	    {"title"?, "body"?, "state"?: open|closed} → 200 the issue, 404, 422.
//	POST /repos/{owner}/{repo}/pulls
//	    {"title", "head", "base", "body"?} → 201 the pull request. Else 422 when one
//	    is open for the same head and base.
//	GET /repos/{owner}/{repo}/issues?state=&since=&sort=&direction=&creator=&per_page=&page=
//	    → 200 a list of issues and of pull requests (those have "pull_request").
//	    The state is open (default), closed or all. By since (RFC 3339), updated_at
//	    is compared. To sort is created (default) or updated, direction desc (default)
//	    or asc, per_page 1 to 100 (default 30). Link has first, prev, next and last with
//	    absolute URLs. Strongly consistent unless settings.list_lag says less.
//	GET /repos/{owner}/{repo}/issues/{number} → 200, 404
//
// Identities in the log: issue:OWNER/REPO:TITLE and pull:OWNER/REPO:HEAD:BASE,
// owner and repository in lower case, the title trimmed; issue-update:OWNER/
// REPO#NUMBER.
//
// Settings: {"list_lag": "0s", "login": "keep-bot"}; the login is the creator of
// everything.
package github
