/* Browsers start no worker from a disk (file:). There, search runs in a hidden frame that looks like a worker. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.receive = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.frame.onload = () => {
        const early = this.waiting
        this.waiting = null
        early.forEach(data => this.postMessage(data))
      }
      this.frame.srcdoc = `<script>window.postMessage = data => frameElement.receive(data)</script><script src="${url}"></script>`
      document.body.append(this.frame)
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
    }
    terminate() { this.frame.remove() }
  }
}
