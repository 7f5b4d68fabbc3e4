// Scrolling through a long conversation of which the page mounts only a part. query: {op}: up goes a part of a screen up, end goes
// to the end.

const scrollerOf = () => {
  const own = first(document, rules.scroller)
  if (own) return own
  for (let up = every(document, rules.turns)[0]; up; up = above(up)) {
    if (up.scrollHeight > up.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(up).overflowY)) return up
  }
  return document.scrollingElement
}

// rendered waits until the page had two frames to mount what came into view; a page in the background may get none for a while.
const rendered = new Promise((resolve) => {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)))
  setTimeout(resolve, 500)
})

const scroller = scrollerOf()
if (query.op === 'end') scroller.scrollTop = scroller.scrollHeight
else scroller.scrollTop = Math.max(0, scroller.scrollTop - Math.max(100, scroller.clientHeight * 0.3))
return rendered.then(() => JSON.stringify({top: scroller.scrollTop <= 0, first: idOf(itemsOf()[0] ?? document.body)}))
