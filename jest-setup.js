import './.config/jest-setup';

// What @grafana/ui's components need of a browser and jsdom does not have.

// React 19's server renderer asks for one while it is loaded. Node's own would keep the process alive.
class MessageChannelStub {
  port1 = { onmessage: null, postMessage() {}, close() {} };
  port2 = { postMessage: (data) => setTimeout(() => this.port1.onmessage?.({ data })), close() {} };
}

class ObserverStub {
  observe() {}
  unobserve() {}
  disconnect() {}
  takeRecords() {
    return [];
  }
}

global.MessageChannel ??= MessageChannelStub;
global.IntersectionObserver ??= ObserverStub;
global.ResizeObserver ??= ObserverStub;

// Combobox measures its options to set its width.
HTMLCanvasElement.prototype.getContext = () => ({ measureText: (text) => ({ width: 8 * text.length }) });

// A virtual list renders nothing in a box of height 0.
for (const side of ['clientHeight', 'clientWidth', 'offsetHeight', 'offsetWidth']) {
  Object.defineProperty(HTMLElement.prototype, side, { configurable: true, value: 120 });
}
