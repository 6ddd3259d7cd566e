"""Faults: what a server does wrong because a test wants it to.

outcomes.py      PASS, DROP, Reply, Refused: what a function of a test decides
rule.py          one rule: which requests, how often, and what it has hit
effects.py       what a rule does to a request: refuse, silence, disconnect, delay, alter, duplicate, control
sending.py       replies of a rule on their way out: held back, cut, sent twice
routes.py        wrong answers about routes
shaping.py       bytes that leave later, slower or in slices
network.py       shaping of the connections of a server
fault_watcher.py the rules that apply now, and what applies them to what a server receives and answers
faults.py        `rocketmq.faults`: one method for each effect
rule_json.py     rules from and to JSON
tcp_proxy.py     the same bytes in front of any server: `pocketmq proxy`
watched_node.py  puts the request log and the faults on a node
"""
