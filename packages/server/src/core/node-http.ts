/**
 * The exports of `node:http` that do no I/O. An import of `node:http` reads all its exports. One of them, WebSocket, loads the code of
 * `fetch` at each start. So no module imports it.
 */
export const { IncomingMessage, METHODS, STATUS_CODES } = process.getBuiltinModule('node:http')
