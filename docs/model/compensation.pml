/* Compensation: the API holds several objects where there should be one, because a condition
   of the promise was broken. Objects are numbered by age, 0 is the oldest. Each that is not
   tied to us strongly may be somebody else's. The process may crash at every moment; an undo
   may be refused, lost, or take effect late.

   Switches: WANTED (a person resolves: it happened and is to be undone), and the bugs BUG_*.

   st is the state of the mutation that has the effects, and ob[o] that of the obligation to
   take object o back, which is a mutation of its own. row(from, trigger, to) and
   rowof(object, from, trigger, to) are their moves by the ledger's transition table.

   Properties. C1: what is undone is ours. C2: the object whose answer the script was given
   is never undone (unless WANTED). C3: of several that are ours, none is left without an
   obligation, a waiver, or an escalation. C4: an obligation that ended as done is gone.
   C5: one that was waived is never undone afterwards. C6: an undo that took effect is never
   reported as impossible. */

#define OBJ 3
#define TRIES 2                        /* sendings of an undo before a person is asked */

mtype = { none, failed, in_flight, needs_reconcile, indeterminate, applied, skipped };

/* durable. asked: a person is asked about an obligation that failed for good */
mtype st = needs_reconcile;
mtype ob[OBJ] = none;
bit asked[OBJ];
byte tries[OBJ], kept = OBJ;
/* the API */
bit there[OBJ], ours[OBJ], late[OBJ], waived[OBJ];
/* volatile */
bit up = 1, seen;
byte at, cur, i;

#define ALLOURS ((!there[0] || ours[0]) && (!there[1] || ours[1]) && (!there[2] || ours[2]))
#define OPEN(o) (!asked[o] && (ob[o]==none || ob[o]==failed || ob[o]==in_flight || ob[o]==needs_reconcile))
#define MORE(o) ((o < 2 && there[2] && OPEN(2)) || (o < 1 && there[1] && OPEN(1)))
#define FORGOTTEN(o) (there[o] && ours[o] && o != kept && ob[o]==none)
#define UNDERWAY(o) (at && cur == o)
#define RESTS(o) (!UNDERWAY(o) && (ob[o]==failed || ob[o]==needs_reconcile || ob[o]==indeterminate))

#define row(from, on, to) assert(st == from); st = to
#define rowof(o, from, on, to) assert(ob[o] == from); ob[o] = to

inline owe(o) { if :: there[o] -> rowof(o, none, owed, failed) :: else fi }
inline undone(o) {
  assert(ours[o]);                                       /* C1 */
  assert(o != kept);                                     /* C2 */
  assert(!waived[o]);                                    /* C5 */
  there[o] = 0 }
inline idle() { at = 0; cur = 0 }

active proctype world() {
  atomic { for (i : 0 .. OBJ-1) { there[i] = 1; if :: ours[i] = 1 :: ours[i] = 0 fi }; ours[0] = 1;
           if :: there[2] = 0 :: skip fi; i = 0 }
  do
  /* what asking shows: several objects */
#ifdef WANTED
  :: atomic { up && st==needs_reconcile && ALLOURS -> there[1] = 0; there[2] = 0; row(needs_reconcile, happened, applied); owe(0) }
#else
  :: atomic { up && st==needs_reconcile ->
       if
#ifdef BUG_FOREIGN_UNDONE
       :: row(needs_reconcile, observed_duplicate, applied); kept = 0; owe(1); owe(2)
#else
       :: ALLOURS ->                                     /* the record and its obligations are one transaction */
          kept = 0; row(needs_reconcile, observed_duplicate, applied);
#ifdef BUG_KEPT_NEWEST
          owe(0); owe(1)
#else
#ifdef BUG_OWED_LATER
          seen = 1
#else
          owe(1); owe(2)
#endif
#endif
       :: !ALLOURS -> row(needs_reconcile, observed_duplicate, indeterminate)   /* a person decides */
#endif
       fi }
#endif
#ifdef BUG_OWED_LATER
  :: atomic { up && seen -> owe(1); owe(2); seen = 0 }
#endif
  /* undoing: an obligation is recorded as sent before it is, the newest first */
  :: atomic { up && at==0 -> select(i : 0 .. OBJ-1);
       if
       :: ob[i]==failed && !asked[i] && !MORE(i) && tries[i]<TRIES -> rowof(i, failed, redispatch, in_flight); tries[i]++; cur = i; at = 1
       :: ob[i]==needs_reconcile && !MORE(i) && tries[i]<TRIES -> rowof(i, needs_reconcile, resend, needs_reconcile); tries[i]++; cur = i; at = 1
       :: ob[i]==failed && !asked[i] && tries[i]>=TRIES -> assert(there[i]); asked[i] = 1                                /* C6 */
       :: ob[i]==needs_reconcile && tries[i]>=TRIES && !late[i] ->                                                      /* it looks first */
          if
          :: there[i] -> rowof(i, needs_reconcile, exhausted, indeterminate)
          :: else -> rowof(i, needs_reconcile, observed_applied, applied)
          fi
       :: else
       fi; i = 0 }
  :: atomic { at==1 && there[cur] -> undone(cur); at = 2 }
  :: atomic { at==1 && !there[cur] ->                    /* 404 */
#ifdef BUG_404_FAILS
       ob[cur] = failed; idle() }
#else
       at = 2 }
#endif
  :: atomic { at==1 && there[cur] ->                     /* refused: that says nothing of a sending before it */
       if
       :: ob[cur]==in_flight -> rowof(cur, in_flight, failure, failed)
       :: ob[cur]==needs_reconcile -> rowof(cur, needs_reconcile, failure, needs_reconcile)
       :: else
       fi; idle() }
  :: atomic { at==1 ->                                   /* lost: may still take effect */
       if
       :: ob[cur]==in_flight -> late[cur] = there[cur]; rowof(cur, in_flight, unknown, needs_reconcile)
       :: ob[cur]==needs_reconcile -> late[cur] = there[cur]; rowof(cur, needs_reconcile, unknown, needs_reconcile)
       :: else
       fi; idle() }
  :: atomic { at==2 -> assert(!there[cur]);              /* C4 */
       if
       :: ob[cur]==in_flight -> rowof(cur, in_flight, success, applied)
       :: ob[cur]==needs_reconcile -> rowof(cur, needs_reconcile, late_success, applied)
       :: else
       fi; idle() }
  :: atomic { late[0] -> if :: there[0] -> undone(0) :: else fi; late[0] = 0 }
  :: atomic { late[1] -> if :: there[1] -> undone(1) :: else fi; late[1] = 0 }
  :: atomic { late[2] -> if :: there[2] -> undone(2) :: else fi; late[2] = 0 }
  :: atomic { late[0] || late[1] || late[2] -> late[0] = 0; late[1] = 0; late[2] = 0 }      /* or it never arrived */
  /* a person waives one, not while an undo of it may still take effect, or has it sent again */
#ifdef BUG_WAIVED_TOO_EARLY
  :: atomic { up -> select(i : 0 .. OBJ-1); if :: ob[i]==in_flight || ob[i]==needs_reconcile -> waived[i] = there[i]; ob[i] = skipped :: else fi; i = 0 }
#else
  :: atomic { up -> select(i : 0 .. OBJ-1);
       if
       :: RESTS(i) && !late[i] -> waived[i] = there[i];
          if
          :: ob[i]==failed -> rowof(i, failed, skip, skipped)
          :: ob[i]==needs_reconcile -> rowof(i, needs_reconcile, skip, skipped)
          :: else -> rowof(i, indeterminate, skip, skipped)
          fi;
          asked[i] = 0
       :: else
       fi; i = 0 }
#endif
  :: atomic { up -> select(i : 0 .. OBJ-1);
       if
       :: ob[i]==failed && asked[i] -> asked[i] = 0; tries[i] = 0
       :: ob[i]==indeterminate -> rowof(i, indeterminate, check_again, needs_reconcile); tries[i] = 0
       :: else
       fi; i = 0 }
  :: atomic { up -> up = 0; if :: at==1 -> late[cur] = there[cur] :: else fi; idle(); seen = 0 }
  :: atomic { !up -> up = 1; for (i : 0 .. OBJ-1) { if :: ob[i]==in_flight -> rowof(i, in_flight, owner_lost, needs_reconcile) :: else fi }; i = 0;
#ifdef BUG_UNDONE_ANEW
       if :: st==applied -> for (i : 0 .. OBJ-1) { if :: there[i] && ob[i]==skipped -> ob[i] = failed :: else fi }; i = 0 :: else fi;
#endif
       skip }
  /* at rest, nothing is forgotten */
  :: atomic { up && st==applied && at==0 && !seen -> assert(!FORGOTTEN(0) && !FORGOTTEN(1) && !FORGOTTEN(2)) }   /* C3 */
  od
}
