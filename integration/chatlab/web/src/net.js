// Post sends JSON to the site; it throws when the network fails.
export function post(path, body) {
  return fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)})
}

// Events keeps one connection over which the server tells the conversation: first all of it, then every change.
export class Events {
  constructor(onEvent) {
    this.onEvent = onEvent
  }

  open(conversation, project) {
    this.socket?.close()
    const query = new URLSearchParams({conversation, project})
    const socket = new WebSocket(`ws://${location.host}/backend-api/events?${query}`)
    this.socket = socket
    socket.onmessage = (message) => socket === this.socket && this.onEvent(JSON.parse(message.data))
    socket.onclose = () => {
      if (socket === this.socket) setTimeout(() => socket === this.socket && this.open(conversation, project), 250)
    }
  }
}

// poll holds a request open for ever, so that the network is never idle.
export async function poll() {
  for (;;) {
    try {
      await fetch('/backend-api/poll')
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 1000))
    }
  }
}
