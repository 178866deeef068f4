// The data of the page: inline in a single file, otherwise asked from the server that sent the page.

export async function loadData() {
  const inline = document.getElementById("data");
  if (inline) return JSON.parse(inline.textContent);
  const answer = await fetch(`data.json${location.search}`);
  if (!answer.ok) throw new Error(`the server does not give the data: ${answer.status} ${answer.statusText}`);
  return answer.json();
}
