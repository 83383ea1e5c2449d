#!/usr/bin/env python3
"""Writes the dashboards for Grafana, each from a table of panels.

usage: dashboards.py [FOLDER]      viaduct-agents.json and viaduct-nodes.json; by default beside this file

Import the JSON files in Grafana, or provision them. Grafana 9 or newer reads them.
"""
import json
import pathlib
import sys

# A panel: title, unit, help, and its queries with their legends. $where is the filter of the dashboard's variables.
AGENTS = [
    ("Bytes a second", "Bps", "Bytes of each rail, when the posts have ended.",
     [("sum by (backend, rail) (rate(viaduct_moved_bytes_total{$where}[$__rate_interval]))", "{{backend}}/{{rail}}")]),
    ("Transfers a second", "ops", "Posts of transfers, by their end.",
     [("sum by (state) (rate(viaduct_transfers_ended_total{$where}[$__rate_interval]))", "{{state}}")]),
    ("Latency", "s", "From a post to its end, of transfers that are done.",
     [(f"histogram_quantile({q}, sum by (le) (rate(viaduct_transfer_seconds_bucket{{$where}}[$__rate_interval])))",
       f"p{q * 100:g}") for q in (0.5, 0.99)]),
    ("Errors by cause", "ops", "Parts of transfers that failed. Another rail may have repeated them.",
     [("sum by (cause) (rate(viaduct_errors_total{$where}[$__rate_interval]))", "{{cause}}")]),
    ("Queue depth by priority", "short", "Parts of running transfers that the rails have.",
     [("sum by (class) (viaduct_rail_works{$where})", "{{class}}")]),
    ("Oldest transfer by priority", "s", "Time since its post.",
     [("max by (class) (viaduct_rail_oldest_seconds{$where})", "{{class}}")]),
    ("Peers", "short", "Peers by their state.",
     [("sum by (state) (viaduct_peers{$where})", "{{state}}")]),
    ("Sessions lost", "short", "In the last 15 minutes.",
     [("sum by (agent) (increase(viaduct_sessions_lost_total{$where}[15m]))", "{{agent}}")]),
    ("Links to ready peers", "short", "An unusable link should reach its peer, and another backend moves the bytes.",
     [("sum by (backend, state) (viaduct_links{$where})", "{{backend}} {{state}}")]),
    ("Protection of links", "short", "Usable links by the protection of their data that is in force.",
     [("sum by (backend, protection) (viaduct_protected_links{$where})", "{{backend}} {{protection}}")]),
    ("Cores that protection keeps busy", "short", "Processor time of sealing and opening data, estimated.",
     [("sum by (agent) (rate(viaduct_sealing_seconds_total{$where}[$__rate_interval]))", "{{agent}}")]),
    ("TCP segments sent again", "percentunit", "Share of the segments of each rail.",
     [("sum by (agent, rail) (rate(viaduct_repeated_segments_total{$where}[$__rate_interval]))"
       " / sum by (agent, rail) (rate(viaduct_sent_segments_total{$where}[$__rate_interval]))", "{{agent}} {{rail}}")]),
    ("Rails set aside", "short", "In the last 15 minutes, because a rail failed again and again.",
     [("sum by (agent, backend, rail) (increase(viaduct_rails_set_aside_total{$where}[15m]))",
       "{{agent}} {{backend}}/{{rail}}")]),
    ("Leases", "short", "Live leases, by the end that the agent has.",
     [("sum by (end) (viaduct_leases{$where})", "{{end}}")]),
    ("Leases that ended", "ops", "By outcome, at the agents that lend.",
     [('sum by (outcome) (rate(viaduct_leases_ended_total{$where,end="lent"}[$__rate_interval]))', "{{outcome}}"),
      ("sum (rate(viaduct_stale_total{$where}[$__rate_interval]))", "stale accesses")]),
    ("Registered memory", "bytes", "Pinned bytes of each agent.",
     [("sum by (agent) (viaduct_pinned_bytes{$where})", "{{agent}}")]),
]
NODES = [
    ("Nodes by kernel", "short", "Nodes that a doctor watches.",
     [("count by (kernel) (viaduct_node_info{$where})", "{{kernel}}")]),
    ("Findings", "short", "Findings of the last diagnosis, by severity.",
     [("sum by (severity) (viaduct_node_findings{$where})", "{{severity}}")]),
    ("Codes of failures and warnings", "short", "Nodes that have each code.",
     [('count by (code, severity) (viaduct_node_finding_info{$where,severity!="info"})', "{{severity}} {{code}}")]),
    ("Time since the last diagnosis", "s", "The doctor of a node may have stopped.",
     [("time() - max by (node) (viaduct_node_diagnosed_timestamp_seconds{$where})", "{{node}}")]),
    ("Bytes a second of each NIC", "Bps", "Bytes of all programs.",
     [("sum by (node, device, direction) (rate(viaduct_node_link_bytes_total{$where}[$__rate_interval]))",
       "{{node}} {{device}} {{direction}}")]),
    ("NICs against line rate", "percentunit", "Share of the line rate in each direction.",
     [("sum by (node, device, direction) (rate(viaduct_node_link_bytes_total{$where}[$__rate_interval]))"
       " / on (node, device) group_left () max by (node, device) (viaduct_node_link_bytes_per_second{$where})",
       "{{node}} {{device}} {{direction}}")]),
    ("TCP segments sent again", "percentunit", "Share of the segments of each node, of all programs.",
     [("sum by (node) (rate(viaduct_node_repeated_segments_total{$where}[$__rate_interval]))"
       " / sum by (node) (rate(viaduct_node_sent_segments_total{$where}[$__rate_interval]))", "{{node}}")]),
]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def panel(number, row, filters):
    title, unit, about, queries = row
    return {
        "id": number + 1, "type": "timeseries", "title": title, "description": about, "datasource": SOURCE,
        "gridPos": {"x": number % 2 * 12, "y": number // 2 * 8, "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [{"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": query.replace("$where", filters),
                     "legendFormat": legend} for i, (query, legend) in enumerate(queries)],
    }


def variable(name, metric):
    return {"name": name, "type": "query", "datasource": SOURCE, "query": f"label_values({metric}, {name})",
            "includeAll": True, "allValue": ".*", "multi": True, "current": {"text": "All", "value": "$__all"}, "refresh": 2}


def dashboard(uid, title, rows, variables):
    filters = ",".join(f'{name}=~"${name}"' for name, _ in variables)
    return {
        "uid": uid, "title": title, "tags": ["viaduct"], "schemaVersion": 38, "version": 1, "editable": True,
        "time": {"from": "now-1h", "to": "now"}, "refresh": "30s",
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"},
                                *(variable(*one) for one in variables)]},
        "panels": [panel(i, row, filters) for i, row in enumerate(rows)],
    }


def dashboards():
    return {
        "viaduct-agents.json": dashboard("viaduct-agents", "Viaduct: agents", AGENTS,
                                         [("instance", "viaduct_agent_info"), ("agent", "viaduct_agent_info")]),
        "viaduct-nodes.json": dashboard("viaduct-nodes", "Viaduct: nodes", NODES,
                                        [("instance", "viaduct_node_info"), ("node", "viaduct_node_info")]),
    }


def text_of(one):
    return json.dumps(one, indent=2) + "\n"


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for name, one in dashboards().items():
        (folder / name).write_text(text_of(one))
