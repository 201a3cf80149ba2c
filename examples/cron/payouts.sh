#!/bin/sh
# What cron starts. Set DAY by hand to go on with an older day. PAYOUTS is the script that pays.
set -u
day=${DAY:-$(date -u +%F)}
payouts=${PAYOUTS:-/usr/local/libexec/pay.sh}

keep-proxy run ${RUN_FLAGS:-} --workflow payouts --item "$day" \
    --title "Payouts of $day" --resume-hint "DAY=$day $0" -- sh "$payouts"
code=$?

# cron mails what a job prints: say only what somebody should read.
case $code in
0) ;;
75) echo "payouts $day: an outcome is not known yet; the next tick goes on" ;;
76) echo "payouts $day: a person has to decide: keep-proxy resolve" ;;
78) echo "payouts $day: not started, for the reason above; the next tick tries again" ;;
*) echo "payouts $day: failed with $code" ;;
esac
exit "$code"
