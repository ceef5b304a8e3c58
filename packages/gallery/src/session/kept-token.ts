const key = 'mediabucket.token'

/** The token that this tab keeps until it is closed; null when there is none, or the browser keeps nothing. */
export function keptToken(): string | null {
  try {
    return sessionStorage.getItem(key)
  } catch {
    return null
  }
}

export function keepToken(token: string): void {
  try {
    sessionStorage.setItem(key, token)
  } catch {
    // Then it lasts until the page is loaded anew.
  }
}

export function forgetToken(): void {
  try {
    sessionStorage.removeItem(key)
  } catch {
    // Nothing was kept.
  }
}
