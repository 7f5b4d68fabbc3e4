// h builds an element. Attributes that are undefined or false are left out; functions become event listeners.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    if (typeof value === 'function') element.addEventListener(name, value)
    else element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...children.filter((child) => child != null))
  return element
}

const paths = {
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M8 8h8v8H8z',
  voice: 'M6 10v4M10 6v12M14 8v8M18 10v4',
  copy: 'M9 9h10v10H9zM5 15V5h10',
  sound: 'M5 10v4h3l4 4V6l-4 4zM16 9a4 4 0 0 1 0 6',
  plus: 'M12 5v14M5 12h14',
  good: 'M7 11l4-7c2 0 2 2 1 5h6l-1 9H7zM4 11h3v9H4z',
}

export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  svg.setAttribute('viewBox', '0 0 24 24')
  svg.setAttribute('aria-hidden', 'true')
  const path = document.createElementNS(svg.namespaceURI, 'path')
  path.setAttribute('d', paths[name])
  svg.append(path)
  return svg
}
