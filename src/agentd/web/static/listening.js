// One stream of happenings for all pages of a browser, which has few connections to give: a shared worker.
const patience = 3000;
const ports = new Set();
let last = null;

function tell(message) {
  ports.forEach((port) => port.postMessage(message));
}

function listen() {
  const stream = new EventSource("/events");
  for (const type of ["changed", "run", "unwatched", "watched"]) {
    stream.addEventListener(type, (event) => tell({ type, about: JSON.parse(event.data) }));
  }
  stream.onopen = () => tell(last = { type: "open" });
  stream.onerror = () => {
    tell(last = { type: "lost" });
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, patience);
  };
}

export function join(port) {
  if (!ports.size) listen();
  ports.add(port);
  if (last) port.postMessage(last);
}

self.onconnect = (event) => {
  const [port] = event.ports;
  port.onmessage = () => ports.delete(port); // the page is left
  join(port);
};
