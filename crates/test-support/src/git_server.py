# Serves the repositories of a directory, with git's own program for that. Its arguments are the directory, the
# address and the port, of which 0 is any free one, and what a caller must send as user:password, or nothing.
# Says its port. Never answers below /mute.
import base64, os, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT, ADDRESS, PORT, CREDENTIALS = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def refuse(self):
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def serve(self):
        path, _, query = self.path.partition("?")
        if path.startswith("/mute"):
            time.sleep(60)
        length = self.headers.get("content-length") or ""
        body = self.rfile.read(int(length or 0))
        wanted = "Basic " + base64.b64encode(CREDENTIALS.encode()).decode()
        if CREDENTIALS and self.headers.get("authorization") != wanted:
            return self.refuse()
        environment = dict(
            os.environ,
            GIT_PROJECT_ROOT=ROOT,
            GIT_HTTP_EXPORT_ALL="1",
            GIT_PROTOCOL=self.headers.get("git-protocol") or "",
            PATH_INFO=path,
            QUERY_STRING=query,
            REQUEST_METHOD=self.command,
            CONTENT_TYPE=self.headers.get("content-type") or "",
            CONTENT_LENGTH=length,
            HTTP_CONTENT_ENCODING=self.headers.get("content-encoding") or "",
        )
        said = subprocess.run(["git", "http-backend"], input=body, env=environment, stdout=-1).stdout
        head, _, rest = said.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = [value for name, value in fields if name == "Status"]
        self.send_response(int(status[0].split()[0]) if status else 200)
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)

    do_GET = do_POST = serve


server = ThreadingHTTPServer((ADDRESS, PORT), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
