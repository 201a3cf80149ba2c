# A script as people write them: it asks for a price, sends a notice if it was told
# to, pays, and tries again when there is no answer. Nothing in it knows keep-proxy.
set -u

send() { # URL BODY
    for try in 1 2 3; do
        if answer=$(curl -sS --fail-with-body --max-time 60 -H 'Content-Type: application/json' -d "$2" "$1" 2>&1); then
            echo "answer: $answer"
            return 0
        fi
        echo "no good answer (try $try): $answer"
    done
    return 1
}

echo "quote:  $(curl -sS --max-time 60 "$DEMO_QUOTES/quote/ACME")"
if [ -n "${DEMO_NOTICE:-}" ]; then
    send "$DEMO_BANK/notices" "$DEMO_NOTICE" || exit 1
fi
send "$DEMO_BANK/transfers" "$DEMO_TRANSFER"
