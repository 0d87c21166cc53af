#!/usr/bin/env python3
"""Follows deploy/README.md in a folder of its own, and checks the rest of deploy as far as this machine can: the node that
the unit starts serves pages through nginx. What a missing program prevents is skipped, with a line that says so.

usage: test.py ARCADE REDIS-SERVER    (the paths of the two programs)
"""
import http.client
import json
import os
import pathlib
import re
import secrets
import shlex
import shutil
import ssl
import subprocess
import sys
import tempfile
import time

ARCADE = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY, ROOT = ARCADE / "deploy", ARCADE.parent.parent
sys.path.insert(0, str(ARCADE))
import nodes  # noqa: E402
from servers import free_port, start  # noqa: E402


def check(what, condition, found=None):
    if not condition:
        raise SystemExit(f"failed: {what}: {found}")
    print(f"ok: {what}", flush=True)


def skip(what, reason):
    print(f"SKIPPED: {what}: {reason}", flush=True)


def write_program(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


# MARK: Installation

def install(program, folder):
    """Runs the commands of README.md, with /opt and /etc in the folder."""
    tools = folder / "tools"
    tools.mkdir()
    write_program(tools / "swift", f'case "$*" in *--show-bin-path*) echo {shlex.quote(str(program.parent))} ;; esac\n')
    write_program(tools / "systemctl", f'echo "$*" >>{shlex.quote(str(folder))}/systemctl\n')
    (folder / "etc" / "systemd" / "system").mkdir(parents=True)
    text = (DEPLOY / "README.md").read_text()
    commands = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    commands = re.sub(r" /(opt|etc)/", rf" {shlex.quote(str(folder))}/\1/", commands)
    (folder / "opt" / "arcade").mkdir(parents=True)
    done = run("bash", "-euc", commands, cwd=ROOT, env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"})
    check("the commands of README.md succeed", done.returncode == 0, done.stderr)
    calls = (folder / "systemctl").read_text().splitlines()
    check("the units are enabled", calls == ["daemon-reload", "enable --now arcade@8081 arcade@8082 arcade.target"], calls)
    environment = folder / "etc" / "arcade.env"
    check("only root can read the password", environment.stat().st_mode & 0o777 == 0o600)
    return dict(line.split("=", 1) for line in environment.read_text().splitlines())


def verify_units(folder, usage):
    """Returns the command of a node, as the unit has it."""
    units = folder / "etc" / "systemd" / "system"
    unit = units / "arcade@.service"
    # The paths of the unit, in the folder.
    unit.write_text(re.sub(r"(?<=[= ])/(opt|etc)/", rf"{folder}/\1/", unit.read_text()))
    command = re.search(r"^ExecStart=(.*)$", unit.read_text(), re.M)[1]
    for path in re.findall(r"(?<=[= ])/\S+", unit.read_text()):
        check(f"README.md installs {path.removeprefix(str(folder))}", pathlib.Path(path).exists())
    options = re.findall(r" (--\S+)", command)
    check("the program has the unit's options", all(f"  {option} " in usage for option in options), options)
    if shutil.which("systemd-analyze"):
        done = run("systemd-analyze", "verify", "--man=no", str(units / "arcade@8081.service"), str(units / "arcade.target"))
        # An unknown setting is only a warning. Others may concern units of this machine.
        faults = [line for line in done.stderr.splitlines() if "arcade" in line]
        check("systemd accepts the units", done.returncode == 0 and not faults, done.stderr)
    else:
        skip("the units", "there is no systemd-analyze")
    return command


# MARK: nginx

def nginx(configuration, folder, *options):
    """Writes a complete configuration around one that is included in the block http, and returns a command."""
    paths = "".join(f"{kind}_temp_path {folder}/{kind}; "
                    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    file = folder / "nginx.conf"
    file.write_text(f"pid {folder}/nginx.pid; error_log stderr; events {{}} http {{ access_log off; {paths}\n"
                    f"{configuration}\n}}\n")
    return ["nginx", "-p", str(folder), "-c", str(file), "-g", "daemon off;", *options]


def with_ports(configuration, listening, ports):
    """The configuration with ports of this test."""
    for former, port in zip(("8081", "8082"), ports):
        configuration = configuration.replace(f"127.0.0.1:{former}", f"127.0.0.1:{port}")
    return re.sub(r"listen \d+", f"listen {listening}", configuration)


def request(port, method, path, body=None):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
    headers = {"Host": "arcade.example", "Origin": "https://arcade.example", "Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def serve(folder, ports):
    """Opens pages, and logs in, through nginx with TLS."""
    if not shutil.which("nginx") or not shutil.which("openssl"):
        return skip("the configurations of nginx", "there is no nginx, or no openssl")
    listening = free_port()
    local = with_ports((DEPLOY / "nginx-local.conf").read_text(), listening, ports)
    done = run(*nginx(local, folder, "-t"))
    check("nginx accepts nginx-local.conf", done.returncode == 0, done.stderr)

    key, certificate = folder / "arcade.key", folder / "arcade.pem"
    done = run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
               "-subj", "/CN=arcade.example", "-keyout", str(key), "-out", str(certificate))
    check("there is a certificate", done.returncode == 0, done.stderr)
    secure = with_ports((DEPLOY / "nginx.conf").read_text(), listening, ports)
    for path in re.findall(r"ssl_certificate(?:_key)? (\S+);", secure):
        secure = secure.replace(path, str(folder / pathlib.Path(path).name))
    done = run(*nginx(secure, folder, "-t"))
    check("nginx accepts nginx.conf", done.returncode == 0, done.stderr)
    with subprocess.Popen(nginx(secure, folder)) as server:
        try:
            for _ in range(600):
                try:
                    status, text = request(listening, "GET", "/healthz")
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            check("the node answers", (status, text) == (200, "ok\n"), (status, text))
            for path in ["/", "/duel/", "/redisdc.js"]:
                check(f"it serves {path}", request(listening, "GET", path)[0] == 200)
            login = {"user": "ann", "device": "duel.1", "credential": secrets.token_urlsafe(24)}
            status, text = request(listening, "POST", "/v1/sessions", json.dumps(login))
            check("a page of this origin logs in", status == 201, (status, text))
        finally:
            server.terminate()


# MARK: Restarts

def restart(arcade, folder):
    """`restart` restarts a node only when the one before serves again."""
    if not shutil.which("curl"):
        return skip("restart", "there is no curl")
    log = folder / "restarts"
    units = [f"arcade@{port}.service" for port in arcade.ports]
    write_program(folder / "tools" / "systemctl",
                  f'case "$1" in\nlist-units) printf "%s loaded active running\\n" {" ".join(units)} ;;\n'
                  f'*) echo "$*" >>{shlex.quote(str(log))} ;;\nesac\n')
    # The time between two attempts.
    write_program(folder / "tools" / "sleep", "")
    environment = os.environ | {"PATH": f"{folder / 'tools'}:{os.environ['PATH']}"}

    def restarted():
        log.write_text("")
        done = run("bash", str(DEPLOY / "restart"), env=environment)
        return done.returncode, log.read_text().splitlines()

    check("all nodes are restarted", restarted() == (0, [f"restart {unit}" for unit in units]))
    arcade.kill(0)
    check("after a node that does not come back, no other is restarted", restarted() == (1, [f"restart {units[0]}"]))


# MARK: Containers

def containers(usage):
    """The profile arcade of the compose file, and the image that it builds."""
    image = (DEPLOY / "Dockerfile").read_text()
    package = re.search(r"--package-path (\S+) --product arcade", image)[1]
    check("the image builds this package", (ROOT / package).resolve() == ARCADE, package)
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", image, re.M)[1])
    check("and starts its program", entry == [f"{package}/.build/release/arcade"], entry)
    try:
        import yaml
    except ImportError:
        return skip("the compose file", "python3 has no yaml")
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    services = {name: service for name, service in services.items() if "arcade" in service.get("profiles", [])}
    proxies = {name: service for name, service in services.items() if "build" not in service}
    built = [service for service in services.values() if "build" in service]
    check("the profile has a proxy and two nodes", len(proxies) == 1 and len(built) == 2, services)
    (name, proxy), = proxies.items()
    for volume in proxy["volumes"]:
        source = ROOT / volume.split(":")[0]
        check(f"{volume.split(':')[0]} exists", source.is_file())
    configuration = source.read_text()
    listening = re.search(r"listen (\d+);", configuration)[1]
    check("the port that nginx serves is published", proxy["ports"] == [f"127.0.0.1:{listening}:{listening}"], proxy["ports"])
    check("nginx names that port to the nodes", f"Host $host:{listening};" in configuration)
    ports = []
    for node in built:
        check("a node is built from the Dockerfile", (ROOT / node["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
              and (ROOT / node["build"]["context"]).resolve() == ROOT, node["build"])
        check("it is in the network of nginx", node["network_mode"] == f"service:{name}", node["network_mode"])
        arguments = dict(zip(node["command"][::2], node["command"][1::2]))
        check("the program has its options", all(f"  {option} " in usage for option in arguments), arguments)
        check("its origin is the published port", arguments["--origin"] == f"http://localhost:{listening}", arguments)
        ports.append(arguments["--port"])
    check("nginx knows the nodes", re.findall(r"server 127\.0\.0\.1:(\d+)", configuration) == ports, ports)


def test(program, redis_url, folder):
    usage = run(str(program), "--help").stdout
    if sys.platform == "linux":
        environment = install(program, folder)
        command = verify_units(folder, usage)
        check("the origin is that of nginx.conf", environment["ORIGIN"] == "https://arcade.example" and
              "server_name arcade.example;" in (DEPLOY / "nginx.conf").read_text(), environment)
        check("the node has its settings by these names", set(environment) == {"REDIS_URL", "ORIGIN"}, environment)
        ports = [free_port(), free_port()]
        os.environ.update(environment | {"REDIS_URL": redis_url})
        for port in ports:
            start(*shlex.split(command.replace("%i", str(port))), ready="serving ")
        for name in environment:
            del os.environ[name]
        serve(folder, ports)
    else:
        skip("the installation with systemd", "this is not Linux")
        (folder / "tools").mkdir()
    restart(nodes.Nodes(str(program), redis_url), folder)
    containers(usage)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        test(pathlib.Path(sys.argv[1]).resolve(), nodes.start_redis(sys.argv[2], name), folder)


if __name__ == "__main__":
    main()
